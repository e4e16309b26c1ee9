#include "src/base/base64.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <string>
#include <utility>
#include <vector>

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

}  // namespace
}  // namespace blindfuse
