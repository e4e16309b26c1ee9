#include "bench/load/slow_senders.h"

namespace blindfuse::load {
namespace {

constexpr std::chrono::milliseconds kTick{50};
constexpr std::chrono::milliseconds kBeginAfter{100};

}  // namespace

SlowSenders::SlowSenders(EventLoop& loop, const Endpoint& endpoint, unsigned count,
                         unsigned bytes_per_second, Window& window)
    : loop_(loop),
      bytes_a_tick_(bytes_per_second * std::chrono::duration<double>(kTick).count()),
      window_(window) {
  for (unsigned i = 0; i < count; ++i) {
    connections_.push_back(std::make_unique<HttpConnection>(loop, endpoint, *this, i));
  }
}

void SlowSenders::start(const QueryPool& pool) {
  pool_ = &pool;
  ++run_;
  for (const auto& connection : connections_) begin(*connection);
  if (!connections_.empty() && !std::exchange(is_ticking_, true)) tick();
}

void SlowSenders::pause() {
  pool_ = nullptr;
  for (const auto& connection : connections_) connection->close();
}

void SlowSenders::on_reply(HttpConnection& connection, Reply reply) {
  // The server need not have waited for all of the request to refuse it.
  ++(reply.status == 200 ? window_.slow_answered : window_.slow_closed);
  begin_later(connection);
}

void SlowSenders::on_broken(HttpConnection& connection) {
  ++window_.slow_closed;
  begin_later(connection);
}

// Between an answer and the next request.
void SlowSenders::on_closed(HttpConnection&) {}

void SlowSenders::begin_later(HttpConnection& connection) {
  loop_.at(Clock::now() + kBeginAfter, [this, &connection, run = run_] {
    if (pool_ != nullptr && run == run_) begin(connection);
  });
}

void SlowSenders::begin(HttpConnection& connection) {
  connection.send((*pool_)[next_++ % pool_->size()].bytes, false, 0);
}

void SlowSenders::tick() {
  allowance_ += bytes_a_tick_;
  const auto bytes = static_cast<size_t>(allowance_);
  allowance_ -= static_cast<double>(bytes);
  for (const auto& connection : connections_) connection->allow(bytes);
  loop_.at(Clock::now() + kTick, [this] { tick(); });
}

}  // namespace blindfuse::load
