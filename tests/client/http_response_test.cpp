// What a server may answer, and what it must not.
#include <blindfuse/errors.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <future>

#include "client/http_response.h"
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

// Servers that keep a client waiting, by a clock that they move themselves.
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

class HttpDeadlineTest : public testing::Test {
 protected:
  HandClock clock_;

  // Until the client closes.
  void let_time_pass(int connection) {
    pollfd closed = {connection, POLLRDHUP, 0};
    while (poll(&closed, 1, 1) == 0) clock_.advance(milliseconds(500));
  }
  // One byte every half second, a few hundred of them.
  void drip(int connection, char byte) {
    for (int i = 0; i < 300; ++i) {
      clock_.advance(milliseconds(500));
      if (!send_all(connection, std::string_view(&byte, 1))) return;
    }
    let_time_pass(connection);
  }

  // The error, as text, of a request within a call of so long.
  std::string failure(const std::string& url, seconds timeout,
                      const std::vector<uint8_t>& body = {}) {
    HttpTransport transport(parse_url(url), HttpOptions());
    Deadline deadline(timeout, clock_.clock());
    transport.set_deadline(deadline);
    CollectedBody receiver;
    return message_of<ConnectionError>([&] {
      body.empty() ? transport.get("/x", 0, receiver) : transport.post("/x", body, receiver);
    });
  }
};

struct SlowServer {
  std::string sent;  // before it drips, or stops if there is nothing to drip
  char drips;
  seconds timeout;
  std::string said, said_of_it;  // before its address, and after that
  bool is_secure = false;
};

TEST_F(HttpDeadlineTest, WhatDripsOrStopsIsGivenUpAndNamed) {
  const std::string ok = "HTTP/1.1 200 OK\r\n", hello("\x16\x03\x03\x40\x00", 5);
  const std::string call = "the call to ",
                    over = " was not done in 60 s; allow more with --timeout";
  for (const SlowServer& slow :
       {SlowServer{ok + "Content-Length: 1000000\r\n\r\n", 'x', seconds(60), call, over},
        {"HTTP/1.1 500 Oh\r\nContent-Length: 60000\r\n\r\n", 'x', seconds(60), call, over},
        {ok + "X: ", 'y', hours(1), "the head of an answer from ",
         " began, and was not whole in 20 s; try again later"},
        {"", 0, seconds(60), call, over},
        {"", 0, hours(1), "nothing came for 60 s from ",
         "; try again later, or wait longer with --timeout"},
        {hello, '\x02', seconds(10), call, " was not done in 10 s; allow more with --timeout",
         true},
        {hello, '\x02', hours(1), "no TLS connection to ", ": is it an https server?", true}}) {
    const RawServer server([&](int connection) {
      if (!slow.is_secure) read_head(connection);
      send_all(connection, slow.sent);
      slow.drips == 0 ? let_time_pass(connection) : drip(connection, slow.drips);
    });
    const std::string url = slow.is_secure ? server.https_url() : server.url();
    EXPECT_EQ(failure(url, slow.timeout), slow.said + url + slow.said_of_it);
  }
}

TEST_F(HttpDeadlineTest, AHeadMayBeginLate) {
  // As long as the engine computes.
  const RawServer server([this](int connection) {
    read_head(connection);
    clock_.advance(kHeadTimeout + seconds(20));
    send_all(connection, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    read_all(connection);
  });
  EXPECT_EQ(failure(server.url(), seconds(60)), "nothing was thrown");
}

TEST_F(HttpDeadlineTest, AQueryThatIsNotReadEndsWithTheCall) {
  std::promise<void> given_up;
  const RawServer server([&](int connection) {
    read_head(connection);
    clock_.advance(seconds(60));
    given_up.get_future().wait();
  });
  EXPECT_THAT(failure(server.url(), seconds(60), std::vector<uint8_t>(64 << 20)),
              HasSubstr("was not done in 60 s"));
  given_up.set_value();
}

TEST_F(HttpDeadlineTest, ACallThatIsOverConnectsToNoServer) {
  const RawServer server([](int) { ADD_FAILURE() << "it connected"; });
  HttpTransport transport(parse_url(server.url()), HttpOptions());
  Deadline deadline(seconds(60), clock_.clock());
  transport.set_deadline(deadline);
  const Deadline::Call call(deadline);
  clock_.advance(seconds(60));
  CollectedBody receiver;
  EXPECT_THROW(transport.get("/x", 0, receiver), ConnectionError);
}

}  // namespace
}  // namespace blindfuse
