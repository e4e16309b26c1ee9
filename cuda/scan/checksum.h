// A sum over bytes, to compare what has arrived in the device's memory with what was sent.
#pragma once

#include <cstdint>
#include <span>

namespace blindfuse {

// As cuda/scan/kernels/checksum.cuh defines it.
uint64_t checksum(std::span<const uint8_t> bytes);

}  // namespace blindfuse
