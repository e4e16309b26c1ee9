#include "src/base/utf8.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace blindfuse {
namespace {

std::string encode(uint32_t code_point) {
  std::string text;
  const auto put = [&](uint32_t byte) { text += static_cast<char>(byte); };
  const auto put_tail = [&](uint32_t shift) { put(0x80 | ((code_point >> shift) & 0x3F)); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | code_point >> 6);
    put_tail(0);
  } else if (code_point < 0x10000) {
    put(0xE0 | code_point >> 12);
    put_tail(6);
    put_tail(0);
  } else {
    put(0xF0 | code_point >> 18);
    put_tail(12);
    put_tail(6);
    put_tail(0);
  }
  return text;
}

bool is_surrogate(uint32_t code_point) { return 0xD800 <= code_point && code_point <= 0xDFFF; }

TEST(Utf8, AcceptsEveryCodePointButSurrogates) {
  for (uint32_t code_point = 0; code_point <= 0x10FFFF; ++code_point) {
    const std::string text = encode(code_point);
    ASSERT_EQ(utf8_sequence_bytes(text), is_surrogate(code_point) ? 0 : text.size()) << code_point;
  }
}

// Together with the test above: exactly the code points of two and three bytes are accepted.
TEST(Utf8, AcceptsNothingElseOfTwoOrThreeBytes) {
  size_t of_two = 0;
  size_t of_three = 0;
  std::array<char, 3> bytes{};
  for (uint32_t i = 0; i < 1u << 24; ++i) {
    for (size_t b = 0; b < 3; ++b) bytes[b] = static_cast<char>(i >> (16 - 8 * b));
    if ((i & 0xFF) == 0) of_two += utf8_sequence_bytes({bytes.data(), 2}) == 2;
    of_three += utf8_sequence_bytes({bytes.data(), 3}) == 3;
  }
  EXPECT_EQ(of_two, 0x800u - 0x80u);
  EXPECT_EQ(of_three, 0x10000u - 0x800u - 0x800u);
}

TEST(Utf8, RefusesWrongSequencesOfFourBytes) {
  for (const std::string text :
       {"\xF0\x8F\xBF\xBF",  // overlong
        "\xF4\x90\x80\x80",  // U+110000
        "\xF5\x80\x80\x80", "\xFF\x80\x80\x80", "\xF8\x88\x80\x80", "\xF0\x90\x80\x7F",
        "\xF0\x90\xC0\x80", "\xF0\x7F\x80\x80", "\xF3\xBF\x80\xC0"}) {
    EXPECT_EQ(utf8_sequence_bytes(text), 0u) << testing::PrintToString(text);
  }
}

TEST(Utf8, RefusesSequencesCutShort) {
  for (const uint32_t code_point : {0xE9u, 0x20ACu, 0x1F600u}) {
    const std::string text = encode(code_point);
    for (size_t size = 0; size < text.size(); ++size) {
      EXPECT_EQ(utf8_sequence_bytes(text.substr(0, size)), 0u);
    }
  }
}

// Words of ASCII are skipped eight bytes at a time: a wrong byte must show at every offset.
TEST(Utf8, FindsTheFirstWrongByteAnywhere) {
  for (size_t size = 0; size < 40; ++size) {
    const std::string good(size, 'a');
    EXPECT_EQ(utf8_prefix_bytes(good), size);
    for (size_t at = 0; at < size; ++at) {
      std::string bad = good;
      bad[at] = '\x80';
      EXPECT_EQ(utf8_prefix_bytes(bad), at);
    }
    EXPECT_EQ(utf8_prefix_bytes(good + "\xC3\xA9" + good), 2 * size + 2);
    EXPECT_EQ(utf8_prefix_bytes(good + "\xE2\x82"), size);
  }
}

TEST(Utf8, AcceptsZeroBytes) { EXPECT_EQ(utf8_prefix_bytes(std::string(20, '\0')), 20u); }

}  // namespace
}  // namespace blindfuse
