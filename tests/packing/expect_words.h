// Words of which a file of vectors has the first, the last and the hash of all.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/protocol/sha256.h"
#include "tests/vectors.h"

namespace blindfuse {

inline std::string sha256_of(std::span<const uint32_t> words) {
  return vectors::to_hex(
      sha256({reinterpret_cast<const uint8_t*>(words.data()), words.size_bytes()}));
}

inline void expect_words(std::span<const uint32_t> found, const vectors::json& expected) {
  const auto first = expected.at("first").get<std::vector<uint32_t>>();
  ASSERT_GE(found.size(), first.size());
  EXPECT_TRUE(std::equal(first.begin(), first.end(), found.begin()));
  const auto last = expected.at("last").get<std::vector<uint32_t>>();
  EXPECT_TRUE(std::equal(last.rbegin(), last.rend(), found.rbegin()));
  EXPECT_EQ(sha256_of(found), expected.at("sha256").get<std::string>());
}

}  // namespace blindfuse
