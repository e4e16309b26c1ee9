// The second level of packed responses (docs/PROTOCOL.md, section 20): from the first level's
// responses, which are in the device's memory, to those that are sent.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cuda/device/memory.h"
#include "cuda/packing/device_ntt.h"
#include "cuda/packing/kernels/second_level_args.h"
#include "src/arithmetic/second_level_spec.h"

namespace blindfuse {

// A batch whose first level's responses are there, or will be there in the stream's order.
struct FirstLevelBatch {
  uint32_t query_count;
  // Bit sequences of word_count words: those of query q from q * response_pitch words of 32 bits
  // on.
  const uint32_t* responses;
  uint64_t response_pitch;
  uint64_t word_count;
  // What its queries brought in addition to their words, extra_pitch words of 32 bits apart: the
  // first level's key, and then what SecondLevelSpec::query_bytes() counts.
  const uint32_t* extras;
  uint64_t extra_pitch;
};

class DeviceSecondLevel {
 public:
  // The squares of as many queries as this holds are in a lane's memory at a time, 8 MiB for each
  // pack: 64 queries of a row of up to 1024 columns. At least one query's always are.
  static constexpr uint64_t kSquareBytesMax = uint64_t{512} << 20;

  // For batches of up to batch_max in each of lane_count lanes, on the current device. Takes
  // bytes_of() of its memory. Returns after the public polynomials have arrived. Throws
  // ResourceError.
  DeviceSecondLevel(const SecondLevelSpec& spec, size_t lane_count, size_t batch_max,
                    uint64_t square_bytes_max = kSquareBytesMax);

  // Of the device's memory. Only the sizes of the spec matter, not its polynomials.
  static uint64_t bytes_of(const SecondLevelSpec& spec, size_t lane_count, size_t batch_max,
                           uint64_t square_bytes_max = kSquareBytesMax);

  // Of what a query brings for it, as it is sent.
  uint64_t query_bytes() const { return spec_.query_bytes(); }
  // Of a response, as it is sent.
  uint64_t response_bytes() const { return spec_.response_bytes(); }
  // Words of 32 bits from one response to the next one.
  uint64_t response_pitch() const { return sizes_.response_words; }
  // Those of a lane's last batch.
  const uint32_t* responses(size_t lane) const { return lanes_[lane].responses.data(); }

  // Comes after the work that is in the stream. Batches of different lanes may be computed at the
  // same time. Queries go through the lane's memory in parts, if they do not fit together.
  void start(size_t lane, const FirstLevelBatch& batch, cudaStream_t stream) const;

 private:
  // Words of 32 bits.
  struct Sizes {
    Sizes(const SecondLevelSpec& spec, size_t batch_max, uint64_t square_bytes_max);

    uint64_t polynomials;     // with the masks of keys
    uint64_t squares;         // of the queries at once
    uint64_t products;        // of the queries at once
    uint64_t response_words;  // of one
    uint64_t responses;       // of a batch
    uint32_t at_once;         // queries
  };
  struct Lane {
    DeviceMemory<uint32_t> squares;
    DeviceMemory<uint32_t> products;
    DeviceMemory<uint32_t> responses;
  };

  SecondLevelSpec spec_;  // without polynomials
  const Sizes sizes_;
  const DeviceNtt ring_;
  DeviceMemory<uint32_t> polynomials_;  // the blocks, and the masks of the key's digits
  std::vector<Lane> lanes_;
  const uint64_t numbers_at_;  // words of 32 bits into a query's extras
};

}  // namespace blindfuse
