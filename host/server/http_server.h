// A database on the network: starts when constructed, stops when destroyed.
//
//   poller thread    accepts clients, waits for their bytes, and closes who says nothing
//   HTTP threads     read, check and answer requests, one connection at a time
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

#include "host/server/connection.h"
#include "host/server/http_exchange.h"
#include "host/server/listening_socket.h"
#include "host/server/parked_connections.h"
#include "host/server/serving_epoch.h"

namespace blindfuse {

struct ServerOptions {
  unsigned http_threads = 128;            // at least 1; each answers one request at a time
  uint64_t queries_per_request_max = 16;  // 1 .. the queue's limit
  unsigned requests_per_connection_max = 100;
  size_t connections_max = 1000;  // beyond that, clients that send nothing make room for new ones
  ConnectionTimeouts timeouts;
};

class HttpServer {
 public:
  // Clients can connect from here on. Throws BadInput when the socket's address cannot be listened
  // on any more, Misuse when an option is out of range.
  HttpServer(std::shared_ptr<const ServingEpoch> epoch, ListeningSocket socket,
             const ServerOptions& options);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // "http://127.0.0.1:8080", with the port that it got.
  const std::string& url() const { return url_; }

  // Accepts nobody any more, answers the requests that have begun, closes all connections, and
  // returns when that is done.
  void stop();

 private:
  void poll_connections();
  void accept_clients();
  void admit(FileDescriptor client);
  bool is_drained();

  void answer_connections();
  void enqueue(std::unique_ptr<Connection> connection);
  std::unique_ptr<Connection> dequeue();
  void finish(std::unique_ptr<Connection> connection, HttpExchange::Outcome outcome);

  const ServerOptions options_;
  const ServedEpochs epochs_;
  ListeningSocket listener_;
  const std::string url_;
  std::atomic<bool> stopping_ = false;
  std::atomic<size_t> open_count_ = 0;
  ParkedConnections parked_;
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
