#include "host/server/http_server.h"

#include <spdlog/spdlog.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "src/errors.h"

namespace blindfuse {
namespace {

const ServerOptions& checked(const ServerOptions& options, const ServingEpoch& epoch) {
  if (options.http_threads < 1) throw Misuse("a server has at least one HTTP thread");
  const size_t queue_max = epoch.scheduler().limits().queue_max;
  if (options.queries_per_request_max < 1 || options.queries_per_request_max > queue_max) {
    throw Misuse("a request may have 1 to " + std::to_string(queue_max) +
                 " queries, as many as may wait in the queue; " +
                 std::to_string(options.queries_per_request_max) + " was asked for");
  }
  return options;
}

}  // namespace

HttpServer::HttpServer(std::shared_ptr<const ServingEpoch> epoch, ListeningSocket socket,
                       const ServerOptions& options)
    : options_(checked(options, *epoch)),
      epochs_(std::move(epoch)),
      listener_(std::move(socket)),
      url_("http://" + format_listen_address(listener_.address())) {
  listener_.listen();
  parked_.watch(listener_.fd(), true);
  try {
    poller_ = std::thread([this] { poll_connections(); });
    for (unsigned i = 0; i < options_.http_threads; ++i) {
      http_threads_.emplace_back([this] { answer_connections(); });
    }
  } catch (const std::system_error& error) {
    stop();
    throw EngineTrouble("cannot start " + std::to_string(options_.http_threads) +
                        " HTTP threads: " + error.what());
  }
}

HttpServer::~HttpServer() { stop(); }

void HttpServer::stop() {
  stopping_ = true;
  parked_.wake();
  if (poller_.joinable()) poller_.join();
  for (std::thread& thread : http_threads_) {
    if (thread.joinable()) thread.join();
  }
}

void HttpServer::poll_connections() {
  for (;;) {
    ParkedConnections::Woken woken = parked_.wait();
    for (auto& connection : woken.connections) enqueue(std::move(connection));
    if (woken.listener) accept_clients();
    if (!stopping_) continue;
    if (listening_) {
      // Clients that have connected are still served, those that wait for nothing let go.
      accept_clients();
      parked_.watch(listener_.fd(), false);
      listener_.close();
      listening_ = false;
    }
    for (auto& connection : parked_.take_waiting()) enqueue(std::move(connection));
    if (is_drained()) return;
  }
}

void HttpServer::accept_clients() {
  // Not without end: those who are in already wait meanwhile.
  for (int i = 0; i < 256; ++i) {
    FileDescriptor client = listener_.accept();
    if (client.is_open()) {
      admit(std::move(client));
      continue;
    }
    // What went wrong with one client is no reason to turn away the next.
    if (errno == EINTR || errno == ECONNABORTED || errno == EPROTO) continue;
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      spdlog::warn("cannot accept a client: {}", std::strerror(errno));
      // Makes room, or waits a moment for some.
      if (parked_.take_oldest() == nullptr)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return;
  }
}

void HttpServer::admit(FileDescriptor client) {
  auto connection = std::make_unique<Connection>(std::move(client), options_.timeouts, open_count_);
  if (open_count_ > options_.connections_max) {
    // Whoever has waited longest without a word goes; when nobody waits, the newcomer does.
    if (parked_.take_oldest() == nullptr) return;
  }
  parked_.park(std::move(connection));
}

bool HttpServer::is_drained() {
  const std::lock_guard lock(mutex_);
  if (!ready_.empty() || busy_count_ > 0 || !parked_.empty()) return false;
  drained_ = true;
  changed_.notify_all();
  return true;
}

void HttpServer::answer_connections() {
  const ExchangeLimits limits{
      options_.queries_per_request_max, options_.requests_per_connection_max,
      std::chrono::duration_cast<std::chrono::seconds>(options_.timeouts.idle)};
  HttpExchange exchange(epochs_, limits, stopping_);
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
  if (outcome == HttpExchange::Outcome::kClose ||
      (outcome == HttpExchange::Outcome::kWait && stopping_)) {
    connection.reset();
  } else {
    parked_.park(std::move(connection));
  }
  const std::lock_guard lock(mutex_);
  --busy_count_;
  if (stopping_) parked_.wake();
}

}  // namespace blindfuse
