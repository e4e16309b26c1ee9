#include "host/server/http/resource.h"

#include <gtest/gtest.h>

#include <string>

namespace blindfuse::http {
namespace {

TEST(ByteRange, ReadsOneRange) {
  EXPECT_EQ(parse_byte_range("bytes=0-0", 10), (ByteRange{0, 0}));
  EXPECT_EQ(parse_byte_range("bytes=3-7", 10), (ByteRange{3, 7}));
  EXPECT_EQ(parse_byte_range("bytes=3-", 10), (ByteRange{3, 9}));
  EXPECT_EQ(parse_byte_range("bytes=-3", 10), (ByteRange{7, 9}));
  EXPECT_EQ(parse_byte_range("bytes=9-9", 10)->size(), 1u);
  EXPECT_EQ(parse_byte_range("Bytes=0-1", 10), (ByteRange{0, 1})) << "a unit has no case";
}

TEST(ByteRange, EndsWhereTheResourceDoes) {
  EXPECT_EQ(parse_byte_range("bytes=3-10", 10), (ByteRange{3, 9}));
  EXPECT_EQ(parse_byte_range("bytes=0-18446744073709551615", 10), (ByteRange{0, 9}));
  EXPECT_EQ(parse_byte_range("bytes=-18446744073709551615", 10), (ByteRange{0, 9}));
  // Beyond 64 bits: syntax knows no largest number (RFC 9110, section 14.1.1).
  EXPECT_EQ(parse_byte_range("bytes=0-18446744073709551616", 10), (ByteRange{0, 9}));
  EXPECT_EQ(parse_byte_range("bytes=3-" + std::string(100, '9'), 10), (ByteRange{3, 9}));
  EXPECT_EQ(parse_byte_range("bytes=-" + std::string(100, '9'), 10), (ByteRange{0, 9}));
}

TEST(ByteRange, IgnoresWhatIsNoSingleRangeOfBytes) {
  for (const char* header : {"", "bytes", "bytes=", "bytes=-", "bytes=a-b", "bytes=1", "bytes=5-4",
                             "bytes=0-1,3-4", "bytes=--1", "bytes=0--1", "bytes= 0-1", "bytes=+0-1",
                             "pages=0-1", "bytes", "byte=0-1", "bytes=0-99999999999999999999x"}) {
    EXPECT_EQ(parse_byte_range(header, 10), std::nullopt) << header;
  }
}

TEST(ByteRange, RefusesWhatBeginsBeyondTheEnd) {
  for (const char* header :
       {"bytes=10-", "bytes=10-10", "bytes=18446744073709551615-", "bytes=18446744073709551616-",
        "bytes=99999999999999999999-99999999999999999999", "bytes=-0"}) {
    try {
      parse_byte_range(header, 10);
      ADD_FAILURE() << "accepted: " << header;
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), 416);
      ASSERT_EQ(error.headers().size(), 1u);
      EXPECT_EQ(error.headers()[0].first, "Content-Range");
      EXPECT_EQ(error.headers()[0].second, "bytes */10");
    }
  }
}

}  // namespace
}  // namespace blindfuse::http
