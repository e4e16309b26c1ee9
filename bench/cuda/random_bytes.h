// Random bytes for matrices and queries of any size. They are never zeros: a GPU draws less power
// on zeros, and is faster.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "bench/cuda/options.h"
#include "host/system/worker_threads.h"

namespace blindfuse::bench {

class RandomBytes {
 public:
  static constexpr size_t kBytes = size_t{64} << 20;

  RandomBytes();

  // This many of them, at most kBytes, from a place that depends on `which`, aligned to 4 bytes:
  // the same every time.
  std::span<const uint8_t> part(size_t byte_count, uint64_t which) const;
  // Words at and above a modulus are among them: they take as long as others.
  std::span<const uint32_t> words(uint64_t count, uint64_t which) const {
    return {reinterpret_cast<const uint32_t*>(part(count * sizeof(uint32_t), which).data()), count};
  }

 private:
  std::vector<uint64_t> words_;
};

// Calls set_columns, as Engine has it (src/engine/engine.h), until all columns are set to random
// bytes: on all threads at the same time, with the same bytes every time.
void fill_columns(
    const RandomBytes& random, const Shape& shape, WorkerThreads& threads,
    const std::function<void(uint64_t first, std::span<const uint8_t> bytes)>& set_columns);

}  // namespace blindfuse::bench
