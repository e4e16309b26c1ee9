// What a server may answer, and what it must not.
#include "client/http_response.h"

#include <blindfuse/errors.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>

#include "client/http_transport.h"
#include "tests/client/client_testing.h"
#include "tests/client/raw_server.h"

namespace blindfuse {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// What a request throws, as text.
template <class Error>
std::string what_fails(const std::string& url) {
  HttpTransport transport(parse_url(url), HttpOptions());
  CollectedBody body;
  return message_of<Error>([&] { transport.get("/v1/x", 0, body); });
}

std::string repeated(const std::string& text, size_t count) {
  std::string all;
  for (size_t i = 0; i < count; ++i) all += text;
  return all;
}

// The server closes with most of the request unread.
TEST(HttpResponse, ARefusalCountsThoughTheRequestCouldNotBeSent) {
  const RawServer server([](int connection) {
    read_head(connection);
    send_all(connection, "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nno\n");
  });
  HttpTransport transport(parse_url(server.url()), HttpOptions());
  CollectedBody body;
  EXPECT_EQ(transport.post("/v1/x", std::vector<uint8_t>(32 << 20), body).status, 413);
}

TEST(HttpResponse, AnEndlessHeadIsRefused) {
  const std::string ok = "HTTP/1.1 200 OK\r\n";
  const std::string go_on = "HTTP/1.1 100 Continue\r\n";
  const std::string many(1'000'000, 'a');
  for (const std::string& answer :
       {"HTTP/1.1 200 " + many, "HTTP/1.1 200 " + many + "\r\n\r\n", ok + "X: " + many,
        ok + repeated("X: y\r\n", 1'000'000), go_on + "\r\nHTTP/1.1 200 " + many,
        go_on + "X: y\r\n\r\nHTTP/1.1 200 " + many, repeated(go_on + "\r\n", 100'000)}) {
    const RawServer server(answer);
    EXPECT_THAT(what_fails<ProtocolError>(server.url()), HasSubstr("too long"))
        << answer.substr(0, 60);
  }
}

TEST(HttpResponse, AnEndlessChunkLengthIsRefused) {
  const RawServer server("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" +
                         std::string(1'000'000, '0'));
  EXPECT_THAT(what_fails<ProtocolError>(server.url()), HasSubstr("too long"));
}

TEST(HttpResponse, HeadsWithinTheLimitsAreRead) {
  const std::string body = "no manifest";
  const RawServer server("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 " + std::string(400, 'a') +
                         "\r\nX: " + std::string(8000, 'b') + "\r\n" + repeated("Y: z\r\n", 5000) +
                         "Content-Length: 11\r\n\r\n" + body);
  EXPECT_EQ(what_fails<std::exception>(server.url()), "nothing was thrown");
}

// Whenever it looks for more, it gets one byte.
TEST(HttpResponse, AnAnswerMayComeByteByByte) {
  for (const std::string end : {"0\r\n\r\n", "0\r\nX: y\r\n\r\n", "3\r\nabc\r\n0\r\n\r\n"}) {
    const std::string answer =
        "HTTP/1.1 103 Hints\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + end;
    std::array<int, 2> ends;
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
    const FileDescriptor server(ends[0]);
    HandClock clock;
    Deadline deadline(std::chrono::hours(1), [&] {
      clock.advance(std::chrono::milliseconds(kWaitSliceMs));
      return clock.clock()();
    });
    const Deadline::Call call(deadline);
    size_t sent = 0;
    Patience patience(
        [&] { return sent == answer.size() || send_all(ends[0], answer.substr(sent++, 1)); });
    patience.begin(deadline);
    Connection connection(std::chrono::hours(1), patience);
    connection.open(FileDescriptor(ends[1]));
    CollectedBody body;
    HttpReply reply;
    EXPECT_TRUE(read_response(connection, patience, "test", body, reply)) << end;
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(body.text.size(), end[0] == '3' ? 3u : 0u);
    EXPECT_EQ(sent, answer.size());
    EXPECT_TRUE(connection.is_open());
  }
}

TEST(HttpResponse, WhatIsNoHttpIsToldFromAConnectionThatBreaks) {
  for (const std::string& answer : {std::string(), std::string("\x15\x03\x01\x00\x02\x02\x46", 7),
                                    std::string("220 mail.example ESMTP\r\n")}) {
    const RawServer server(answer);
    EXPECT_THAT(what_fails<ConnectionError>(server.url()), HasSubstr("is it https, or another"));
  }
  const RawServer server("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{");
  EXPECT_THAT(what_fails<ConnectionError>(server.url()),
              AllOf(HasSubstr("broke; try again"), Not(HasSubstr("https"))));
}

}  // namespace
}  // namespace blindfuse
