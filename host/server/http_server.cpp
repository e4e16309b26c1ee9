#include "host/server/http_server.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "src/errors.h"

namespace blindfuse {
namespace {

const ServerOptions& checked(const ServerOptions& options, const ServedEpochs& epochs) {
  if (options.http_threads < 1) throw Misuse("a server has at least one HTTP thread");
  const auto epoch = epochs.current();
  const size_t queue_max = epoch->scheduler().limits().queue_max;
  if (options.queries_per_request_max < 1 || options.queries_per_request_max > queue_max) {
    throw Misuse("a request may have 1 to " + std::to_string(queue_max) +
                 " queries, as many as may wait in the queue; " +
                 std::to_string(options.queries_per_request_max) + " was asked for");
  }
  return options;
}

std::string url_of(const ListeningSocket& listener, bool tls) {
  const std::string address = format_listen_address(listener.address());
  if (listener.address().is_unix()) return address;
  return (tls ? "https://" : "http://") + address;
}

}  // namespace

HttpServer::HttpServer(const ServedEpochs& epochs, ServerMetrics& metrics, ListeningSocket socket,
                       const ServerOptions& options, std::shared_ptr<const TlsCertificate> tls)
    : options_(checked(options, epochs)),
      tls_(std::move(tls)),
      metrics_(metrics),
      listener_(std::move(socket)),
      url_(url_of(listener_, tls_ != nullptr)),
      context_{options_, epochs, metrics, stopping_,
               [parked = parked_](Connection::Id id) { parked->on_answer(id); }} {
  // A port for metrics alone says nothing of its own clients.
  if (options_.routes != RouteSet::kMetricsAndHealth) {
    totals_.published = &metrics.open_connections();
  }
  listener_.listen();
  parked_->watch(listener_.fd(), true);
  try {
    // The poller last: without it nothing comes to those that have started.
    for (unsigned i = 0; i < options_.http_threads; ++i) {
      http_threads_.emplace_back([this] { answer_connections(); });
    }
    poller_ = std::thread([this] { poll_connections(); });
  } catch (const std::system_error& error) {
    is_drained();
    stop();
    throw EngineTrouble("cannot start " + std::to_string(options_.http_threads) +
                        " HTTP threads: " + error.what());
  }
}

HttpServer::~HttpServer() { stop(); }

void HttpServer::stop() {
  stopping_ = true;
  parked_->wake();
  if (poller_.joinable()) poller_.join();
  for (std::thread& thread : http_threads_) {
    if (thread.joinable()) thread.join();
  }
}

void HttpServer::poll_connections() {
  for (;;) {
    ParkedConnections::Woken woken = parked_->wait();
    for (const auto& connection : woken.left) leave(*connection);
    for (auto& connection : woken.lingering) {
      if (connection->discard()) parked_->park(std::move(connection));
    }
    for (auto& connection : woken.connections) enqueue(std::move(connection));
    if (woken.listener) accept_clients();
    if (!stopping_) continue;
    if (listening_) begin_drain();
    for (auto& connection : parked_->take_idle()) enqueue(std::move(connection));
    if (is_drained()) return;
  }
}

// Clients that have connected are still served, those that wait for nothing let go, and nobody is
// waited for without end.
void HttpServer::begin_drain() {
  accept_clients();
  parked_->watch(listener_.fd(), false);
  listener_.close();
  listening_ = false;
  parked_->end_by(Connection::Clock::now() + options_.timeouts.drain);
}

void HttpServer::accept_clients() {
  // Not without end: those who are in already wait meanwhile.
  for (int i = 0; i < 256; ++i) {
    ListeningSocket::Client client = listener_.accept();
    if (client.socket.is_open()) {
      try {
        admit(std::move(client));
      } catch (const std::exception& error) {
        spdlog::error("a client cannot be taken in: {}", error.what());
      }
      continue;
    }
    // What went wrong with one client is no reason to turn away the next.
    if (errno == EINTR || errno == ECONNABORTED || errno == EPROTO) continue;
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      spdlog::warn("cannot accept a client: {}", std::strerror(errno));
      // Makes room, or waits a moment for some.
      if (parked_->take_oldest() == nullptr)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return;
  }
}

void HttpServer::admit(ListeningSocket::Client client) {
  auto channel = tls_ ? tls_->make_channel(std::move(client.socket))
                      : make_plain_channel(std::move(client.socket));
  auto connection = std::make_unique<Connection>(
      next_id_++, std::move(channel), std::move(client.peer), options_.timeouts, totals_);
  if (totals_.open_count > options_.connections_max) {
    // Whoever has waited longest without a word goes; when nobody waits, the newcomer does.
    if (parked_->take_oldest() == nullptr) return;
  }
  parked_->park(std::move(connection));
}

// Its client has gone before its answer came. What the engine has begun with it finishes, for
// nobody.
void HttpServer::leave(const Connection& connection) {
  constexpr int kClientClosedRequest = 499;  // as nginx counts it; nobody gets to see it
  const ActiveRequest& request = *connection.request();
  request.answer->drop();
  metrics_.on_queries(QueryOutcome::kAbandoned, request.query_count);
  metrics_.on_request(name_of(Route::kQueries), kClientClosedRequest,
                      request.head_text.size() + request.body->byte_count(),
                      Connection::Clock::now() - request.begun_at);
}

bool HttpServer::is_drained() {
  const std::lock_guard lock(mutex_);
  if (!ready_.empty() || busy_count_ > 0 || !parked_->empty()) return false;
  drained_ = true;
  changed_.notify_all();
  return true;
}

void HttpServer::answer_connections() {
  HttpExchange exchange(context_);
  while (std::unique_ptr<Connection> connection = dequeue()) {
    HttpExchange::Outcome outcome = HttpExchange::Outcome::kClose;
    try {
      outcome = exchange.serve(*connection);
    } catch (const std::exception& error) {
      spdlog::error("a connection failed: {}", error.what());
    }
    finish(std::move(connection), outcome);
  }
}

void HttpServer::enqueue(std::unique_ptr<Connection> connection) {
  const std::lock_guard lock(mutex_);
  ready_.push_back(std::move(connection));
  changed_.notify_one();
}

// Nothing when there will be no more.
std::unique_ptr<Connection> HttpServer::dequeue() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !ready_.empty() || drained_; });
  if (ready_.empty()) return nullptr;
  std::unique_ptr<Connection> connection = std::move(ready_.front());
  ready_.pop_front();
  ++busy_count_;
  return connection;
}

void HttpServer::finish(std::unique_ptr<Connection> connection, HttpExchange::Outcome outcome) {
  if (outcome == HttpExchange::Outcome::kLinger) connection->linger();
  if (outcome == HttpExchange::Outcome::kAgain) {
    enqueue(std::move(connection));
  } else if (outcome == HttpExchange::Outcome::kClose ||
             (stopping_ && connection->is_between_requests())) {
    connection.reset();
  } else {
    parked_->park(std::move(connection));
    bound_bodies();
  }
  const std::lock_guard lock(mutex_);
  --busy_count_;
  if (stopping_) parked_->wake();
}

// A client that has nearly sent a long body, and then sends no more, holds its memory until its
// time is up. Those who come with a body now have theirs in a moment.
void HttpServer::bound_bodies() {
  if (totals_.body_bytes == 0) return;
  const uint64_t bytes_max = body_bytes_max();
  while (totals_.body_bytes > bytes_max) {
    const auto oldest = parked_->take_oldest_body();
    if (oldest == nullptr) return;
    spdlog::warn(
        "bodies that are arriving hold more than {} bytes; the one that has taken longest "
        "is given up",
        bytes_max);
  }
}

// Of the epochs of the moment: the next may have queries of another size.
uint64_t HttpServer::body_bytes_max() const {
  constexpr uint64_t kBodies = 64;
  if (options_.body_bytes_max > 0) return options_.body_bytes_max;
  uint64_t longest = 0;
  for (const auto& epoch : context_.epochs.all()) {
    const QueryBodyLimits limits = query_limits(*epoch, options_.queries_per_request_max);
    longest = std::max(longest, limits.body_bytes_max(BodyFormat::kJson));
  }
  return kBodies * longest;
}

}  // namespace blindfuse
