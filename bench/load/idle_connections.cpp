#include "bench/load/idle_connections.h"

namespace blindfuse::load {
namespace {

constexpr std::chrono::milliseconds kReopenAfter{100};

}  // namespace

IdleConnections::IdleConnections(EventLoop& loop, const Endpoint& endpoint, unsigned count,
                                 Window& window)
    : loop_(loop), window_(window) {
  for (unsigned i = 0; i < count; ++i) {
    connections_.push_back(std::make_unique<HttpConnection>(loop, endpoint, *this, i));
  }
}

void IdleConnections::start() {
  for (const auto& connection : connections_) connection->open();
}

void IdleConnections::open_later(HttpConnection& connection) {
  ++window_.idle_reopened;
  loop_.at(Clock::now() + kReopenAfter, [&connection] { connection.open(); });
}

}  // namespace blindfuse::load
