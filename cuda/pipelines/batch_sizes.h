// The device memory for the batches of an answer pipeline.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/arithmetic/second_level_spec.h"

namespace blindfuse {

// Batches that may be on the device at the same time, each in a lane of its own.
constexpr size_t kLanes = 2;

// The shape of one matrix, and of queries and responses of one form.
struct BatchShape {
  uint64_t row_count = 0;
  uint64_t column_count = 0;
  uint32_t query_bits = 32;
  uint64_t extra_words = 0;     // words of 32 bits that follow a query's own words
  uint64_t response_words = 0;  // words of 32 bits of a response, as kernels write it
  // Words of 32 bits that a query brings for a second level, after its extras.
  uint64_t second_words = 0;
  // A query has row_count words for each, which are multiplied one after another by as many columns
  // each.
  uint64_t bucket_count = 1;
};

// The sizes of the buffers for batches of up to batch_max queries of that shape.
struct BatchSizes {
  BatchSizes(const BatchShape& shape, size_t batch_max);

  // A query in its slot: its bit sequence, a word that reading it touches, its extras, and those
  // for a second level.
  uint64_t query_bytes;  // of the bit sequence alone
  uint64_t extras_at;    // words of 32 bits into a slot
  uint64_t slot_words;
  uint64_t response_words;  // of the shape
  // The buffers of each lane.
  uint64_t queries;    // words of 32 bits
  uint64_t limbs;      // bytes: those of one bucket at a time
  uint64_t sums;       // of each query's words, weighted; words of 32 bits, whole lines of memory
  uint64_t products;   // words of 32 bits
  uint64_t responses;  // words of 32 bits

  // Bytes of the device's memory for all lanes.
  uint64_t device_bytes() const {
    return kLanes * (limbs + sizeof(uint32_t) * (queries + sums + products + responses));
  }
};

// The shapes of the batches in the hint mode, whose responses are rounded products, and in the
// packed mode, whose queries carry a packing key.
BatchShape hint_shape(uint64_t row_count, uint64_t column_count, uint32_t query_bits,
                      uint32_t response_bits);
BatchShape packed_shape(uint64_t row_count, uint64_t column_count, size_t pack_count,
                        uint32_t query_bits, uint32_t response_bits,
                        const SecondLevelSpec* second = nullptr, size_t bucket_count = 1);

}  // namespace blindfuse
