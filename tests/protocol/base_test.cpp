#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "src/base/base64.h"
#include "src/base/errors.h"
#include "src/base/hex.h"
#include "src/base/utf8.h"
#include "tests/support.h"

namespace blindfuse {
namespace {

using support::as_bytes;
using support::SeededRandom;

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// RFC 4648, section 10; the last two use the two digits that are neither letter nor number.
const std::vector<std::pair<std::string, std::string>> kExamples = {
    {"", ""},
    {"f", "Zg=="},
    {"fo", "Zm8="},
    {"foo", "Zm9v"},
    {"foob", "Zm9vYg=="},
    {"fooba", "Zm9vYmE="},
    {"foobar", "Zm9vYmFy"},
    {"\xfb\xef\xbe", "++++"},
    {"\xff\xff\xff", "////"},
};

TEST(Base64, WritesAndReadsTheExamplesOfTheStandard) {
  for (const auto& [bytes, text] : kExamples) {
    EXPECT_EQ(encode_base64(as_bytes(bytes)), text);
    EXPECT_EQ(decode_base64(text), bytes);
    EXPECT_EQ(base64_length(bytes.size()), text.size());
  }
}

TEST(Base64, AgreesWithOpenSslAtEveryLength) {
  SeededRandom random(1);
  std::vector<size_t> lengths = {1'000'000, 1'000'001, 1'000'002};
  for (size_t length = 0; length < 200; ++length) lengths.push_back(length);
  for (const size_t length : lengths) {
    const std::string bytes = random.bytes(length);
    std::string expected(base64_length(length) + 1, '\0');
    EVP_EncodeBlock(reinterpret_cast<unsigned char*>(expected.data()), as_bytes(bytes).data(),
                    static_cast<int>(length));
    expected.pop_back();  // a zero
    ASSERT_TRUE(encode_base64(as_bytes(bytes)) == expected) << length;
    ASSERT_TRUE(decode_base64(expected) == bytes) << length;
  }
}

TEST(Base64, RefusesMissingMisplacedOrSurplusPadding) {
  for (const char* text :
       {"Z", "Zg", "Zg=", "Zm8", "Zm9vY", "Zm9vYg", "Zm9vYg=", "=", "==", "===", "====", "Z===",
        "=Zg=", "Z=g=", "Zg==Zg==", "Zm8=Zm8=", "Zm9v====", "Zm9v=", "Zg==="}) {
    EXPECT_EQ(decode_base64(text), std::nullopt) << text;
  }
}

// A digit that carries unused bits must have them zero, or one byte string would have many texts.
TEST(Base64, RefusesUnusedBits) {
  for (size_t i = 0; i < kAlphabet.size(); ++i) {
    const std::string one{'Z', kAlphabet[i], '=', '='}, two{'Z', 'm', kAlphabet[i], '='};
    EXPECT_EQ(decode_base64(one).has_value(), i % 16 == 0) << one;
    EXPECT_EQ(decode_base64(two).has_value(), i % 4 == 0) << two;
  }
}

// White space, the URL alphabet, zero bytes and everything else, at every place of a text.
TEST(Base64, RefusesEveryOtherCharacter) {
  const std::string good = "Zm9vYmFy";
  for (int c = 0; c < 256; ++c) {
    const char other = static_cast<char>(c);
    if (kAlphabet.find(other) != std::string_view::npos) continue;
    for (size_t at = 0; at < good.size(); ++at) {
      std::string bad = good;
      bad[at] = other;
      // "Zm9vYmF=" has unused bits that are not zero.
      EXPECT_FALSE(decode_base64(bad).has_value()) << c << " at " << at;
    }
    EXPECT_EQ(decode_base64(good + other), std::nullopt) << c;
    EXPECT_EQ(decode_base64(other + good), std::nullopt) << c;
  }
  for (const char* text : {" Zm9v", "Zm9v ", "Zm9v\n", "Zm9v\r\n", "Zm9v\n\n\n\n", "\n\n\n\n",
                           "    ", "Zm 9vYg=", "Zm9v\nYmFy"}) {
    EXPECT_EQ(decode_base64(text), std::nullopt) << text;
  }
}

TEST(Base64, DecodesIntoMemoryOfTheRightSizeOnly) {
  for (const auto& [bytes, text] : kExamples) {
    std::vector<uint8_t> out(bytes.size() + 1, 0xaa);
    EXPECT_FALSE(decode_base64_into(text, out));
    if (!bytes.empty()) {
      EXPECT_FALSE(decode_base64_into(text, std::span(out).first(bytes.size() - 1)));
    }
    EXPECT_TRUE(decode_base64_into(text, std::span(out).first(bytes.size())));
    EXPECT_EQ(std::string(out.begin(), out.end() - 1), bytes);
    EXPECT_EQ(out.back(), 0xaa) << "a byte beyond the end was written";
  }
  std::vector<uint8_t> three(3);
  for (const char* bad : {"Zm9*", "Zm9", "Zm9 "})
    EXPECT_FALSE(decode_base64_into(bad, three)) << bad;
}

// A caller that handles one kind must not swallow the other.
static_assert(!std::is_base_of_v<InputError, ResourceError>);
static_assert(!std::is_base_of_v<ResourceError, InputError>);
static_assert(std::is_base_of_v<std::runtime_error, InputError>);
static_assert(std::is_base_of_v<std::runtime_error, ResourceError>);

TEST(Errors, AnInvariantThatHoldsIsSilent) { invariant(true, "one is one"); }

using ErrorsDeathTest = testing::Test;

TEST_F(ErrorsDeathTest, ABrokenInvariantAbortsWithItsPlace) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_DEATH(invariant(false, "one is two"),
               "base_test\\.cpp:[0-9]+: broken invariant: one is two");
}

// RFC 4648, section 10, in lower case.
TEST(Hex, WritesTheExamplesOfTheStandard) {
  EXPECT_EQ(encode_hex(as_bytes("")), "");
  EXPECT_EQ(encode_hex(as_bytes("f")), "66");
  EXPECT_EQ(encode_hex(as_bytes("foo")), "666f6f");
  EXPECT_EQ(encode_hex(as_bytes("foobar")), "666f6f626172");
}

TEST(Hex, ReadsWhatItWrites) {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes.push_back(static_cast<char>(byte));
  EXPECT_EQ(decode_hex(encode_hex(as_bytes(bytes))), bytes);
  EXPECT_EQ(decode_hex("666f6F626172"), "foobar");
  for (const char* odd : {"6", "666"}) EXPECT_EQ(decode_hex(odd), std::nullopt) << odd;
}

// Every character in the place of either digit.
TEST(Hex, RefusesEveryOtherCharacter) {
  const std::string digits = "0123456789abcdefABCDEF";
  for (int c = 0; c < 256; ++c) {
    const char other = static_cast<char>(c);
    const bool is_digit = digits.find(other) != std::string::npos;
    EXPECT_EQ(decode_hex(std::string{other, '6'}).has_value(), is_digit) << c;
    EXPECT_EQ(decode_hex(std::string{'6', other}).has_value(), is_digit) << c;
  }
}

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
