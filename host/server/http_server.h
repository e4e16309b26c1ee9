// A database on the network: starts when constructed, stops when destroyed.
//
//   poller thread    accepts clients, waits for what happens to them, and closes who takes too long
//   HTTP threads     read, check and answer requests; none ever waits for a client or the engine
//   engine worker    of the epoch's BatchScheduler: does the products
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "host/server/connections/connection.h"
#include "host/server/connections/listening_socket.h"
#include "host/server/connections/parked_connections.h"
#include "host/server/connections/tls.h"
#include "host/server/http_exchange.h"
#include "host/server/server_context.h"

namespace blindfuse {

class HttpServer {
 public:
  // Clients can connect from here on. What is given by reference outlives the server. Without a
  // certificate clients speak plain HTTP. Throws BadInput when the socket's address cannot be
  // listened on any more, Misuse when an option is out of range.
  HttpServer(const ServedEpochs& epochs, ServerMetrics& metrics, ListeningSocket socket,
             const ServerOptions& options, std::shared_ptr<const TlsCertificate> tls = nullptr);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // "http://127.0.0.1:8080", with the port that it got; "unix:/path" for a UNIX socket.
  const std::string& url() const { return url_; }

  // Accepts nobody any more, answers the requests that have begun, closes all connections, and
  // returns when that is done.
  void stop();

 private:
  void poll_connections();
  void accept_clients();
  void admit(ListeningSocket::Client client);
  void leave(const Connection& connection);
  void begin_drain();
  bool is_drained();

  void answer_connections();
  void enqueue(std::unique_ptr<Connection> connection);
  std::unique_ptr<Connection> dequeue();
  void finish(std::unique_ptr<Connection> connection, HttpExchange::Outcome outcome);
  void bound_bodies();
  uint64_t body_bytes_max() const;

  const ServerOptions options_;
  const std::shared_ptr<const TlsCertificate> tls_;
  ServerMetrics& metrics_;
  ListeningSocket listener_;
  const std::string url_;
  std::atomic<bool> stopping_ = false;
  Connection::Totals totals_;
  Connection::Id next_id_ = 2;  // those below are the poller's
  // Shared with the engine's worker, which may bring an answer when the server has gone.
  const std::shared_ptr<ParkedConnections> parked_ = std::make_shared<ParkedConnections>();
  const ServerContext context_;
  bool listening_ = true;  // the poller's own

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Connection>> ready_;  // for the HTTP threads
  size_t busy_count_ = 0;                          // connections in their hands
  bool drained_ = false;                           // there will be no more

  std::vector<std::thread> http_threads_;
  std::thread poller_;
};

}  // namespace blindfuse
