#include "bench/load/response_reader.h"

#include <blindfuse/errors.h>
#include <gtest/gtest.h>

namespace blindfuse::load {
namespace {

constexpr std::string_view kPlain =
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\nhello";
constexpr std::string_view kChunked =
    "HTTP/1.1 100 Continue\r\n\r\n"
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    "3;x=y\r\nhel\r\n2\r\nlo\r\n0\r\nTrailer: 1\r\n\r\n";

// All that follows from one response in pieces of `piece` bytes.
ResponseReader read(std::string_view bytes, size_t piece) {
  ResponseReader reader;
  reader.begin(true);
  size_t at = 0;
  while (at < bytes.size() && !reader.is_complete()) {
    const std::string_view next = bytes.substr(at, piece);
    at += reader.feed(next);
  }
  EXPECT_EQ(at, bytes.size());
  return reader;
}

TEST(ResponseReader, ReadsBodiesInAnyPieces) {
  for (const std::string_view response : {kPlain, kChunked}) {
    for (size_t piece = 1; piece <= response.size(); ++piece) {
      ResponseReader reader = read(response, piece);
      ASSERT_TRUE(reader.is_complete()) << piece;
      EXPECT_EQ(reader.status(), 200);
      EXPECT_FALSE(reader.closes());
      EXPECT_EQ(reader.take_body(), "hello");
    }
  }
}

TEST(ResponseReader, KeepsNoBodyUnlessAsked) {
  ResponseReader reader;
  reader.begin(false);
  reader.feed(kPlain);
  EXPECT_TRUE(reader.is_complete());
  EXPECT_EQ(reader.take_body(), "");
}

TEST(ResponseReader, StopsAtTheEndOfAResponse) {
  ResponseReader reader;
  reader.begin(true);
  EXPECT_EQ(reader.feed(std::string(kPlain) + "HTTP"), kPlain.size());
}

TEST(ResponseReader, ReadsWhatARefusalSays) {
  const ResponseReader reader = read(
      "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\nconnection: Close\r\n"
      "CONTENT-LENGTH:0\r\n\r\n",
      1000);
  EXPECT_TRUE(reader.is_complete());
  EXPECT_EQ(reader.status(), 503);
  EXPECT_TRUE(reader.closes());
  EXPECT_EQ(reader.retry_after_s(), 2u);
}

TEST(ResponseReader, WithoutALengthABodyEndsWithTheConnection) {
  ResponseReader reader = read("HTTP/1.0 200 OK\r\n\r\nhello", 1000);
  EXPECT_FALSE(reader.is_complete());
  EXPECT_TRUE(reader.finish());
  EXPECT_TRUE(reader.closes());
  EXPECT_EQ(reader.take_body(), "hello");
}

TEST(ResponseReader, AConnectionThatBreaksGivesNoResponse) {
  for (size_t length = 0; length < kPlain.size(); ++length) {
    ResponseReader reader = read(kPlain.substr(0, length), 1000);
    EXPECT_FALSE(reader.finish()) << length;
  }
}

TEST(ResponseReader, RefusesWhatIsNoHttp) {
  for (const std::string& bytes :
       {std::string("SSH-2.0\r\n"), std::string("HTTP/1.1 abc\r\n"), std::string("HTTP/2 200\r\n"),
        std::string("HTTP/1.1 200 OK\r\nno colon\r\n"),
        std::string("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n"),
        std::string("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n"),
        std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n"),
        std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"),
        std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n"),
        "HTTP/1.1 200 OK\r\nX: " + std::string(70'000, 'x')}) {
    ResponseReader reader;
    reader.begin(true);
    EXPECT_THROW(reader.feed(bytes), ProtocolViolation) << bytes.substr(0, 80);
  }
}

}  // namespace
}  // namespace blindfuse::load
