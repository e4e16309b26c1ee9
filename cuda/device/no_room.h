// Memory that a library did not get, of which it says no more.
#pragma once

#include <string>

namespace blindfuse {

// Throws as check_cuda() does where the device is lost, and ResourceError otherwise. For
// std::bad_alloc from Thrust, which throws that for every error of cudaMalloc
// (thrust/system/cuda/detail/malloc_and_free.h of CCCL 3.0), and so where a kernel has failed
// before.
// what: was to have the memory; why: as the library says it.
[[noreturn]] void throw_no_room(const std::string& what, const std::string& why);

}  // namespace blindfuse
