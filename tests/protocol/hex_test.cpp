#include "src/base/hex.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support.h"

namespace blindfuse {
namespace {

using support::as_bytes;

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

}  // namespace
}  // namespace blindfuse
