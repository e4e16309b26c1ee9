// Requests as a client sends them, through everything that reads and answers them. The first byte
// says how the rest is cut into pieces, between which the server may find nothing to read. Whatever
// comes: the connection ends, what goes out is a row of whole responses of statuses that
// docs/HTTP_API.md knows, and the next client is served.
#include <utility>

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "host/server/http/connection.h"
#include "host/server/routes/api.h"
#include "src/base/errors.h"
#include "src/program/log.h"
#include "tests/server/tiny_database.h"

namespace {

using namespace blindfuse;
using namespace blindfuse::server_testing;

constexpr uint64_t kQueriesMax = 2;

// One for the whole run: what one input does to it the next must not notice.
struct World {
  World() : epochs(make_epoch()) { configure_log(LogFormat::kText, "off"); }

  static std::shared_ptr<const ServingEpoch> make_epoch() {
    LoadedDatabase database = tiny_database();
    // So that an input can name it.
    database.epoch = EpochId(64, 'e');
    return std::make_shared<const ServingEpoch>(std::move(database),
                                                BatchLimits{.batch_max = 4, .queue_max = 8});
  }

  ServedEpochs epochs;
  ServerMetrics metrics;
  Readiness readiness;
  ApiContext api_context{
      epochs,
      metrics,
      readiness,
      {.queries_per_request_max = kQueriesMax, .cors_origins = {"https://page.example"}}};
  const std::shared_ptr<http::Handler> api = make_api(api_context);
  boost::asio::io_context io{1};
  // Without work of its own, the loop would stop between inputs.
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work =
      boost::asio::make_work_guard(io);
  http::Context context{*api, {.requests_per_connection_max = 20}};
};

World& world() {
  static World the_world;
  return the_world;
}

// The client's end of a connection. Nothing here waits.
class Wire {
 public:
  explicit Wire(FileDescriptor socket) : socket_(std::move(socket)) {}

  // Sends up to `size` bytes, and takes them off `bytes`.
  void send(std::string_view& bytes, size_t size) {
    const ssize_t sent =
        ::send(socket_.get(), bytes.data(), std::min(size, bytes.size()), MSG_NOSIGNAL);
    // A client that is sent no more than it wants says so with an error, which is not a reason to
    // stop reading.
    if (sent > 0) bytes.remove_prefix(static_cast<size_t>(sent));
    if (sent < 0 && errno == EPIPE) bytes = {};
  }
  void finish() { shutdown(socket_.get(), SHUT_WR); }
  void close() { socket_ = FileDescriptor(); }
  // False at the end.
  bool receive(std::string& into) {
    char bytes[4096];
    for (;;) {
      const ssize_t got = recv(socket_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
      if (got <= 0) return got < 0 && errno == EAGAIN;
      into.append(bytes, static_cast<size_t>(got));
    }
  }

 private:
  FileDescriptor socket_;
};

// What a client that sends this gets. One that says that no more will come may get no answer from a
// batch that is being computed, so it waits a little with that.
std::string talk(std::string_view incoming, size_t piece, bool says_when_finished) {
  World& all = world();
  int sockets[2];
  invariant(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sockets) == 0,
            "there are sockets");
  // So that responses are written in parts.
  const int small = 4096;
  setsockopt(sockets[1], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
  Wire client{FileDescriptor(sockets[0])};
  http::Connection::spawn(std::make_shared<http::Connection>(
      boost::asio::make_strand(all.io), http::make_plain_channel(FileDescriptor(sockets[1])),
      "peer", all.context));
  std::string outgoing;
  // Each time a byte moves at least, or an answer comes, or it is over.
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(8);
  while (client.receive(outgoing)) {
    invariant(std::chrono::steady_clock::now() < give_up, "serving comes to an end");
    if (!incoming.empty()) client.send(incoming, piece);
    if (all.io.poll() != 0 || all.io.run_one_for(std::chrono::milliseconds(1)) != 0) continue;
    if (says_when_finished && incoming.empty()) client.finish();
  }
  client.close();
  while (all.context.connections.count() > 0) all.io.run_one_for(std::chrono::milliseconds(1));
  invariant(all.context.connections.body_bytes() == 0, "nothing is left behind");
  return outgoing;
}

// The value of a header; empty when there is none.
std::string_view header(std::string_view head, std::string_view name) {
  const std::string begin = "\r\n" + std::string(name) + ": ";
  const size_t at = head.find(begin);
  if (at == std::string_view::npos) return "";
  const size_t from = at + begin.size();
  return head.substr(from, head.find("\r\n", from) - from);
}

// Takes the responses apart. Those to HEAD have no body although they announce one, which a client
// knows and we do not: then the next bytes begin the next response, or there are none.
void check_responses(std::string_view bytes) {
  static const std::set<int> kStatuses = {100, 200, 204, 206, 304, 400, 401, 404, 405, 408,
                                          410, 411, 413, 414, 415, 416, 431, 501, 503, 505};
  bool last = false;
  while (!bytes.empty()) {
    invariant(!last, "nothing follows the last response");
    invariant(bytes.starts_with("HTTP/1.1 "), "a response begins");
    const size_t end = bytes.find("\r\n\r\n");
    invariant(end != std::string_view::npos, "a response has a whole head");
    const std::string_view head = bytes.substr(0, end + 2);
    const int status = std::atoi(std::string(head.substr(9, 3)).c_str());
    invariant(kStatuses.contains(status), "the status is one that the interface knows");
    for (const char c : head) {
      invariant((c >= ' ' && c <= '~') || c == '\r' || c == '\n', "a head is text");
    }
    bytes.remove_prefix(end + 4);
    last = header(head, "Connection") == "close";
    const std::string_view length = header(head, "Content-Length");
    if (status == 100 || status == 204 || status == 304) continue;
    invariant(!length.empty(), "a response says how long it is");
    const size_t size = std::stoull(std::string(length));
    const bool to_head = bytes.empty() || bytes.starts_with("HTTP/1.1 ");
    if (to_head && size > 0) continue;
    invariant(size <= bytes.size(), "a response is whole");
    if (status >= 400) {
      invariant(header(head, "Content-Type") == "application/problem+json", "a problem");
      const std::string_view body = bytes.substr(0, size);
      invariant(body.starts_with("{\"type\":\"urn:blindfuse:problem:") && body.ends_with("}\n"),
                "a problem is an object");
    }
    bytes.remove_prefix(size);
  }
}

void check_next_client() {
  static const Numbers query = random_query(1);
  static const std::string request =
      "POST /v1/epochs/" + EpochId(64, 'e') +
      "/queries HTTP/1.1\r\nHost: x\r\nContent-Type: application/octet-stream\r\nContent-Length: " +
      std::to_string(kQueryBytes) + "\r\nConnection: close\r\n\r\n" + pack(query, kQueryBits);
  static const std::string response = expected_response(query);
  const std::string answer = talk(request, 1000, false);
  invariant(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\n" + response),
            "the next client gets the right answer");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t pieces[] = {1, 2, 7, 64, 300, 1000, 20'000, 1'000'000};
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  check_responses(talk(bytes, pieces[data[0] % 8], true));
  check_next_client();
  return 0;
}
