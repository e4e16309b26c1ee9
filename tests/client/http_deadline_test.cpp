// Servers that keep a client waiting, by a clock that they move themselves.
#include <blindfuse/errors.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <future>

#include "client/http_response.h"
#include "client/http_transport.h"
#include "tests/client/client_testing.h"
#include "tests/client/raw_server.h"

namespace blindfuse {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

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

  // What a request within a call of so long throws, as text.
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
