// Checksums that compare the bytes that arrived in the device's memory with those that were sent.
//
// The checksum of bytes w_0 w_1 ..., read as words of 8 bytes (little endian, the last one filled
// up with zeros), is the sum over i of (2 i + 1) w_i modulo 2^64. An odd factor shows every altered
// word, and different ones show words that changed places.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>

namespace blindfuse {

// The data of one part of a sequence from which the checksum of the sequence is made.
struct PartialChecksum {
  uint64_t sum = 0;           // of the words
  uint64_t weighted_sum = 0;  // the part's own checksum

  explicit PartialChecksum(std::span<const uint8_t> bytes = {});
  // The part's share in the checksum of the whole, in which the part begins with word `first`.
  uint64_t from(uint64_t first) const { return weighted_sum + 2 * first * sum; }
};

// The checksum of word_count words in the memory of the current device, after the earlier work in
// the stream. Waits for it. Throws as check_cuda() does.
uint64_t device_checksum(const uint64_t* words, uint64_t word_count, cudaStream_t stream);

}  // namespace blindfuse
