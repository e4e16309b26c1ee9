// A RandomSource whose bytes a seed determines, for tests that must give the same result every
// time.
#pragma once

#include <cstdint>
#include <cstring>
#include <iostream>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "src/system/random.h"

namespace blindfuse {

// Prints the seed, so that a failure can be told from chance.
inline RandomSource seeded_random(uint64_t seed) {
  std::cout << "[ seed     ] " << seed << "\n";
  auto engine = std::make_shared<std::mt19937_64>(seed);
  return [engine](std::span<uint8_t> bytes) {
    for (size_t at = 0; at < bytes.size(); at += 8) {
      const uint64_t word = (*engine)();
      std::memcpy(bytes.data() + at, &word, std::min<size_t>(8, bytes.size() - at));
    }
  };
}

// The same byte forever.
inline RandomSource constant_random(uint8_t byte) {
  return [byte](std::span<uint8_t> bytes) { std::memset(bytes.data(), byte, bytes.size()); };
}

// The sum of (observed - expected)^2 / expected over equally likely outcomes.
inline double chi_square(const std::vector<uint64_t>& counts) {
  double total = 0, sum = 0;
  for (const uint64_t count : counts) total += static_cast<double>(count);
  const double expected = total / static_cast<double>(counts.size());
  for (const uint64_t count : counts) {
    const double difference = static_cast<double>(count) - expected;
    sum += difference * difference / expected;
  }
  return sum;
}

}  // namespace blindfuse
