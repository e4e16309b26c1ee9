// How many file descriptors this process may have.
#pragma once

#include <cstdint>

namespace blindfuse {

// Asks for `wanted` if the limit is lower, as far as the hard limit lets it. The limit there is
// then.
uint64_t raise_descriptor_limit(uint64_t wanted);

}  // namespace blindfuse
