// The limit of this process's file descriptors.
#pragma once

#include <cstdint>

namespace blindfuse {

// Raises the limit to `wanted` if it is lower, as far as the hard limit allows. Returns the
// resulting limit.
uint64_t raise_descriptor_limit(uint64_t wanted);

}  // namespace blindfuse
