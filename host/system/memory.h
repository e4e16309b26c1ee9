// Memory for large data that is read as a whole again and again: matrices and packing tables.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

namespace blindfuse {

// Throws ResourceError if the machine's memory cannot hold this many more bytes, or if the control
// group of this process must not. The message has `what` and the bytes needed and available.
void check_memory(std::string_view what, uint64_t bytes);

// Zeros, aligned to a page, in huge pages if the system has them. They take no memory until they
// are written. Throws ResourceError as check_memory does if the address space is exhausted.
std::shared_ptr<void> map_memory(std::string_view what, uint64_t bytes);

}  // namespace blindfuse
