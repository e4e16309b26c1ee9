// Deadlines that a client cannot put off by sending a byte now and then.
#include <poll.h>

#include "tests/server/running_server.h"

namespace blindfuse::server_testing {
namespace {

class TricklingClient final : public LoopbackClient {
 public:
  using LoopbackClient::LoopbackClient;

  // Sends `piece` every `pause_ms` until the server has something to say; false when it has not
  // after `pieces` of them.
  bool trickle(std::string_view piece, int pause_ms, int pieces) {
    pollfd server{fd(), POLLIN, 0};
    for (int i = 0; i < pieces; ++i) {
      if (poll(&server, 1, pause_ms) != 0) return true;
      send(piece);
    }
    return false;
  }
};

class Deadlines : public RunningServer {
 protected:
  static ServerOptions short_deadlines() {
    ServerOptions options = default_options();
    options.http.timeouts.head = std::chrono::milliseconds(200);
    options.http.timeouts.body = std::chrono::milliseconds(200);
    return options;
  }
};

TEST_F(Deadlines, OfAHeadIsNotPutOffByItsBytes) {
  start(short_deadlines());
  TricklingClient client(url());
  client.send("GET /health/live HTTP/1.1\r\nHost: x\r\nX-Slow: ");
  // 5,000 bytes are fewer than a header may have, so that only the deadline can end this.
  EXPECT_TRUE(client.trickle("x", 10, 5'000));
  EXPECT_TRUE(client.is_closed()) << "without an answer";
}

TEST_F(Deadlines, OfABodyIsNotPutOffByItsBytes) {
  start(short_deadlines());
  TricklingClient client(url());
  client.send(post_head(queries_path(), "application/octet-stream", std::to_string(kQueryBytes)));
  EXPECT_TRUE(client.trickle("x", 10, static_cast<int>(kQueryBytes) - 1));
  const HttpResponse response = client.receive();
  EXPECT_EQ(response.status, 408);
  EXPECT_EQ(response.problem(), "request-timeout");
}

TEST_F(Deadlines, OfAChunkedBodyIsNotPutOffByItsChunks) {
  start(short_deadlines());
  TricklingClient client(url());
  client.send("POST " + queries_path() +
              " HTTP/1.1\r\nHost: x\r\nContent-Type: application/octet-stream\r\n"
              "Transfer-Encoding: chunked\r\n\r\n");
  EXPECT_TRUE(client.trickle("1\r\nx\r\n", 10, static_cast<int>(kQueryBytes) - 1));
  const HttpResponse response = client.receive();
  EXPECT_EQ(response.status, 408);
  EXPECT_EQ(response.problem(), "request-timeout");
}

}  // namespace
}  // namespace blindfuse::server_testing
