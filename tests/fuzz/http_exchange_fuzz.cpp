// Requests as a client sends them, through everything that reads and answers them. The first byte
// says how the rest is cut into pieces, between which the server finds nothing to read. Whatever
// comes: serve() never waits, what goes out is a row of whole responses of statuses that
// docs/HTTP_API.md knows, and the next client is served.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "host/server/http_exchange.h"
#include "src/errors.h"
#include "tests/server/tiny_database.h"

namespace {

using namespace blindfuse;
using namespace blindfuse::server_testing;

constexpr uint64_t kQueriesMax = 2;

// What a client sends is there from the beginning, what it gets is kept.
struct Wire {
  std::string_view incoming;
  size_t piece = 1;  // bytes that are there at a time
  size_t ready = 0;  // of these, still to be read
  std::string outgoing;
  size_t room = 0;  // for bytes that can be sent now
  bool finished = false;

  // Time passes: more has arrived, and more can be sent.
  void go_on() {
    ready = std::min(piece, incoming.size());
    room = 10 * piece;
  }
};

class MemoryChannel final : public Channel {
 public:
  explicit MemoryChannel(Wire& wire) : wire_(wire) {}

  int fd() const override { return -1; }
  Result read(std::span<char> into) override {
    if (wire_.incoming.empty()) return {Status::kClosed};
    const size_t count = std::min(wire_.ready, into.size());
    invariant(!into.empty(), "there is room for what is read");
    if (count == 0) return {Status::kWantRead};
    wire_.incoming.copy(into.data(), count);
    wire_.incoming.remove_prefix(count);
    wire_.ready -= count;
    return {Status::kDone, count};
  }
  Result write(std::string_view bytes) override {
    invariant(!wire_.finished && !bytes.empty(), "nothing is sent after the end");
    const size_t count = std::min(wire_.room, bytes.size());
    if (count == 0) return {Status::kWantWrite};
    wire_.outgoing.append(bytes.substr(0, count));
    wire_.room -= count;
    return {Status::kDone, count};
  }
  void finish_writing() override { wire_.finished = true; }

 private:
  Wire& wire_;
};

// The answers of the engine, which come on its own thread.
class Answers {
 public:
  void on_answer() {
    const std::lock_guard lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  void wait_for(const PendingAnswer& answer) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return answer.is_done(); });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t count_ = 0;
};

// One for the whole run: what one input does to it the next must not notice.
struct World {
  World() : epochs(make_epoch()) {
    spdlog::set_level(spdlog::level::off);
    options.api.queries_per_request_max = kQueriesMax;
    options.http.requests_per_connection_max = 20;
    options.api.cors_origins = {"https://page.example"};
  }
  static std::shared_ptr<const ServingEpoch> make_epoch() {
    LoadedDatabase database = tiny_database();
    // So that an input can name it.
    database.epoch = EpochId(64, 'e');
    return std::make_shared<const ServingEpoch>(std::move(database),
                                                BatchLimits{.batch_max = 4, .queue_max = 8});
  }

  ServerOptions options;
  ServedEpochs epochs;
  ServerMetrics metrics;
  Connection::Totals totals;
  std::atomic<bool> stopping = false;
  Answers answers;
  ServerContext context{options, epochs, metrics, stopping,
                        [this](Connection::Id) { answers.on_answer(); }};
  HttpExchange exchange{context};
};

World& world() {
  static World the_world;
  return the_world;
}

// What a client that sends this gets.
std::string talk(std::string_view incoming, size_t piece) {
  World& all = world();
  Wire wire{.incoming = incoming, .piece = piece};
  {
    Connection connection(7, std::make_unique<MemoryChannel>(wire), "peer", all.options.http.timeouts,
                          all.totals);
    // Each time a byte moves at least, or an answer comes, or it is over.
    const size_t steps_max = 10 * incoming.size() + 2'000'000 / piece + 1000;
    for (size_t step = 0;; ++step) {
      invariant(step < steps_max, "serving comes to an end");
      wire.go_on();
      const HttpExchange::Outcome outcome = all.exchange.serve(connection);
      if (outcome == HttpExchange::Outcome::kAgain) continue;
      if (outcome == HttpExchange::Outcome::kLinger) {
        connection.linger();
        invariant(wire.finished, "who lingers has said so");
      }
      if (outcome != HttpExchange::Outcome::kWait) break;
      if (connection.interest() == Connection::Interest::kAnswer) {
        all.answers.wait_for(*connection.request()->answer);
      }
      connection.start_waiting(Connection::Clock::now());
    }
  }
  invariant(all.totals.open_count == 0 && all.totals.body_bytes == 0, "nothing is left behind");
  return wire.outgoing;
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
  const std::string answer = talk(request, 1000);
  invariant(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\n" + response),
            "the next client gets the right answer");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t pieces[] = {1, 2, 7, 64, 300, 1000, 20'000, 1'000'000};
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  check_responses(talk(bytes, pieces[data[0] % 8]));
  check_next_client();
  return 0;
}
