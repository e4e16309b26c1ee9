// Randomness from the operating system, injected wherever it is used so that tests can fix it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

namespace blindfuse {

// Fills the span with independent uniform bytes.
using RandomSource = std::function<void(std::span<uint8_t>)>;

// Calls getrandom(2). Throws ResourceError when the system has no random bytes.
void fill_from_system(std::span<uint8_t> bytes);

}  // namespace blindfuse
