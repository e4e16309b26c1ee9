// Reads the device's memory, and nothing else.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace blindfuse::bench {

// *folded ^= every 4 bytes of this many bytes, a multiple of 16 that is aligned to 16. Returns at
// once.
void start_read_all(const void* bytes, uint64_t byte_count, uint32_t* folded, cudaStream_t stream);

}  // namespace blindfuse::bench
