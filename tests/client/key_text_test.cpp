#include "client/key_text.h"

#include <gtest/gtest.h>

#include "src/base/errors.h"

namespace blindfuse {
namespace {

TEST(KeyText, StandsForBytes) {
  EXPECT_EQ(decode_key("h\xc3\xa9", KeyEncoding::kUtf8), "h\xc3\xa9");
  EXPECT_EQ(decode_key("", KeyEncoding::kUtf8), "");
  EXPECT_EQ(decode_key("00fF", KeyEncoding::kHex), std::string("\0\xff", 2));
  EXPECT_EQ(decode_key("AP8=", KeyEncoding::kBase64), std::string("\0\xff", 2));
}

TEST(KeyText, RefusesWhatStandsForNone) {
  EXPECT_THROW(decode_key("\xff", KeyEncoding::kUtf8), InputError);
  EXPECT_THROW(decode_key("0", KeyEncoding::kHex), InputError);
  EXPECT_THROW(decode_key("0g", KeyEncoding::kHex), InputError);
  EXPECT_THROW(decode_key("\xff\xff", KeyEncoding::kHex), InputError);
  EXPECT_THROW(decode_key("AP8", KeyEncoding::kBase64), InputError);
  EXPECT_THROW(decode_key("AP9=", KeyEncoding::kBase64), InputError);
}

TEST(KeyText, Utf8IsStrict) {
  EXPECT_TRUE(is_utf8(std::string_view("a\0b", 3)));
  EXPECT_TRUE(is_utf8("\xf0\x9f\x90\xa6"));
  for (const char* wrong : {"\x80", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82"}) {
    EXPECT_FALSE(is_utf8(wrong));
  }
}

}  // namespace
}  // namespace blindfuse
