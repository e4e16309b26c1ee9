#include "bench/cuda/random_bytes.h"

#include <algorithm>
#include <random>

#include "src/base/errors.h"

namespace blindfuse::bench {
namespace {

// Columns that are set at a time: half a buffer of the engine's, and a small part of the random
// bytes, so that there are many different ones.
constexpr uint64_t kBytesAtOnce = 8 << 20;

}  // namespace

RandomBytes::RandomBytes() : words_(kBytes / sizeof(uint64_t)) {
  std::mt19937_64 random(1);
  for (uint64_t& word : words_) word = random();
}

std::span<const uint8_t> RandomBytes::part(size_t byte_count, uint64_t which) const {
  invariant(byte_count <= kBytes, "no more random bytes than there are");
  // Multiples of the golden ratio are spread evenly, however many there are.
  const uint64_t spread = which * 0x9e37'79b9'7f4a'7c15 >> 32;
  const uint64_t offset = spread % ((kBytes - byte_count) / 4 + 1) * 4;
  return {reinterpret_cast<const uint8_t*>(words_.data()) + offset, byte_count};
}

void fill_columns(
    const RandomBytes& random, const Shape& shape, WorkerThreads& threads,
    const std::function<void(uint64_t first, std::span<const uint8_t> bytes)>& set_columns) {
  const uint64_t at_once = std::max<uint64_t>(1, kBytesAtOnce / shape.rows);
  threads.run([&](unsigned index) {
    for (uint64_t first = index * at_once; first < shape.columns;
         first += threads.count() * at_once) {
      const uint64_t count = std::min(at_once, shape.columns - first);
      set_columns(first, random.part(count * shape.rows, first));
    }
  });
}

}  // namespace blindfuse::bench
