// Deadlines that a client cannot put off by sending, or taking, a byte now and then.
#include <poll.h>
#include <sys/socket.h>

#include <csignal>
#include <thread>

#include "tests/server/attacks.h"
#include "tests/server/tls_testing.h"

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

// Takes its response a little at a time.
template <typename Client>
class SippingClient final : public Client {
 public:
  using Client::Client;

  // Takes up to `bytes` bytes every `pause_ms` until the connection ends, or `enough` have come;
  // says how many have.
  size_t sip(size_t bytes, int pause_ms, size_t enough) {
    size_t taken = 0;
    std::string some(bytes, '\0');
    while (taken < enough) {
      const ssize_t got = this->read_some(some.data(), std::min(bytes, enough - taken));
      if (got <= 0) break;
      taken += static_cast<size_t>(got);
      poll(nullptr, 0, pause_ms);
    }
    return taken;
  }
};

constexpr char kSlowReaders[] = "blindfuse_http_connections_cut_total{why=\"slow_reader\"}";

class Deadlines : public Attacks {
 protected:
  static ServerOptions short_write() {
    ServerOptions options = default_options();
    options.http.timeouts.write = std::chrono::seconds(1);
    return options;
  }

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
  const std::string length = "Content-Length: " + std::to_string(kQueryBytes);
  for (const auto& [framing, piece] : {std::pair<std::string, std::string>(length, "x"),
                                       {"Transfer-Encoding: chunked", "1\r\nx\r\n"}}) {
    TricklingClient client(url());
    client.send("POST " + queries_path() +
                " HTTP/1.1\r\nHost: x\r\nContent-Type: application/octet-stream\r\n" + framing +
                "\r\n\r\n");
    EXPECT_TRUE(client.trickle(piece, 10, static_cast<int>(kQueryBytes) - 1));
    expect_problem(client.receive(), 408, "request-timeout");
  }
}

// However long it is said to be: this one would have had 20 minutes.
TEST_F(Deadlines, OfALongBodyEndWhenNothingComes) {
  constexpr size_t kMany = 100'000;
  ServerOptions options = short_deadlines();
  options.api.queries_per_request_max = kMany;
  start(options, {.batch_max = 4, .queue_max = kMany});
  LoopbackClient client(url());
  client.send(
      post_head(queries_path(), "application/octet-stream", std::to_string(kMany * kQueryBytes)));
  EXPECT_EQ(client.receive().problem(), "request-timeout");
}

// Nor does one that was ahead of the pace.
TEST_F(Deadlines, OfALongBodyEndAStandstill) {
  ServerOptions options = short_deadlines();
  options.http.timeouts.body = std::chrono::hours(1);
  options.http.timeouts.standstill = std::chrono::milliseconds(200);
  start(options);
  LoopbackClient client(url());
  client.send(post_head(queries_path(), "application/octet-stream", std::to_string(kQueryBytes)));
  client.send("x");
  EXPECT_EQ(client.receive().problem(), "request-timeout");
}

// However long the response is: a client has to keep the pace for what it has taken, too. Otherwise
// this one had 20 minutes.
TEST_F(Deadlines, OfALongResponseEndWhenItIsTakenTooSlowly) {
  constexpr size_t kBytes = 1'000'000;
  start_large_with_small_buffers(short_write());
  SippingClient<LoopbackClient> client(url(), 4'096);
  client.send(large_hint_request());
  EXPECT_LT(client.sip(100, 10, kBytes), kBytes);
  wait_for_metric(kSlowReaders, 1);
  expect_healthy();
}

TEST_F(Deadlines, OfALongResponseOverTlsEndWhenItIsTakenTooSlowly) {
  constexpr size_t kBytes = 1'000'000;
  std::signal(SIGPIPE, SIG_IGN);
  const std::string certificate = folder_ / "cert.pem", key = folder_ / "key.pem";
  write_certificate_and_key(certificate, key, 1);
  start_large_with_small_buffers(short_write(),
                                 std::make_shared<http::TlsCertificate>(certificate, key));
  SippingClient<TlsClient> client(url(), TLS1_3_VERSION, 4'096);
  client.send(large_hint_request());
  EXPECT_LT(client.sip(100, 10, kBytes), kBytes);
  EXPECT_EQ(metric(kSlowReaders), 1);
}

// A window opens in large steps: whoever is ahead of the pace may stand still for longer than it
// may take for nothing at all.
TEST_F(Deadlines, OfAResponseAreNotThoseOfAClientThatIsAhead) {
  ServerOptions options = default_options();
  options.http.timeouts.write = std::chrono::milliseconds(200);
  start_large_with_small_buffers(options);
  SippingClient<LoopbackClient> client(url(), 4'096);
  client.send(large_hint_request());
  constexpr size_t kAhead = 2'000'000, kRest = 1'000'000;
  EXPECT_EQ(client.sip(100'000, 0, kAhead), kAhead);
  std::this_thread::sleep_for(std::chrono::seconds(1));
  EXPECT_EQ(client.sip(100'000, 0, kRest), kRest);
}

TEST_F(Deadlines, OfAResponseEndAStandstill) {
  ServerOptions options = default_options();
  options.http.timeouts.write = std::chrono::hours(1);
  options.http.timeouts.standstill = std::chrono::milliseconds(200);
  start_large_with_small_buffers(options);
  LoopbackClient client(url(), 4'096);
  client.send(large_hint_request());
  wait_for_metric(kSlowReaders, 1);
  EXPECT_TRUE(client.is_cut_off());
}

}  // namespace
}  // namespace blindfuse::server_testing
