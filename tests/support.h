// What many tests need: reproducible randomness, and the text of an error.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "src/base/errors.h"

namespace blindfuse::support {

// Random numbers from a fixed seed, which it prints: a failure can be repeated, and a test of
// chance be tried with another. Next to nothing of <random> gives the same numbers with every
// library, so everything is made of the raw words here.
class SeededRandom {
 public:
  explicit SeededRandom(uint64_t seed) : words_(seed) {
    std::printf("random seed %llu\n", static_cast<unsigned long long>(seed));
  }

  uint64_t u64() { return words_(); }
  uint32_t u32() { return static_cast<uint32_t>(words_() >> 32); }
  uint8_t byte() { return static_cast<uint8_t>(words_() >> 56); }
  // 0 .. bound-1, for bounds so far below 2^64 that the unevenness does not show.
  uint64_t below(uint64_t bound) { return words_() % bound; }
  uint64_t between(uint64_t low, uint64_t high) { return low + below(high - low + 1); }
  // -1, 0 or 1.
  int ternary() { return static_cast<int>((uint64_t{u32()} * 3) >> 32) - 1; }

  template <typename T>
  const T& one_of(const std::vector<T>& choices) {
    return choices[below(choices.size())];
  }

  std::string bytes(size_t count) {
    std::string bytes(count, '\0');
    for (char& c : bytes) c = static_cast<char>(byte());
    return bytes;
  }
  std::vector<uint8_t> octets(size_t count) {
    std::vector<uint8_t> octets(count);
    for (uint8_t& octet : octets) octet = byte();
    return octets;
  }
  std::vector<uint32_t> words(size_t count) {
    std::vector<uint32_t> words(count);
    for (uint32_t& word : words) word = u32();
    return words;
  }
  std::vector<int> ternaries(size_t count) {
    std::vector<int> numbers(count);
    for (int& number : numbers) number = ternary();
    return numbers;
  }

 private:
  std::mt19937_64 words_;
};

// The message of the InputError that `act` throws, which must be one short line; empty when it
// throws none.
inline std::string input_error_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const InputError& error) {
    const std::string message = error.what();
    EXPECT_NE(message, "");
    EXPECT_LE(message.size(), 400u) << message;
    for (const char c : message) {
      const bool printable = c >= ' ' && c <= '~';
      EXPECT_TRUE(printable) << "byte " << (c & 0xff) << " in: " << message;
      if (!printable) break;
    }
    return message;
  }
  return "";
}

inline std::span<const uint8_t> as_bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace blindfuse::support
