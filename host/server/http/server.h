// An HTTP/1.1 server. It starts when it is constructed, and stops when it is destroyed. It does not
// depend on the service that it serves.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "host/server/http/handler.h"
#include "host/server/http/listening_socket.h"
#include "host/server/http/options.h"
#include "host/server/http/tls.h"

namespace blindfuse::http {

class Server {
 public:
  // Clients can connect from here on. The handler outlives the server. Without a certificate,
  // clients use plain HTTP. Throws InputError if the server cannot listen on the socket's address
  // any more, UsageError if the number of threads is zero, and ResourceError if threads cannot be
  // started.
  Server(Handler& handler, ListeningSocket socket, const Options& options,
         std::shared_ptr<const TlsCertificate> tls = nullptr);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // "http://127.0.0.1:8080", with the port that it got; "unix:/path" for a UNIX socket.
  const std::string& url() const;

  // Ends the connections that are being sent a response from this memory (Body::memory()). Any
  // thread.
  size_t end_responses_of(const void* memory);

  // The bytes that requests and responses hold at the moment. Any thread.
  struct Memory {
    uint64_t bodies = 0;     // of requests that are arriving
    uint64_t responses = 0;  // reserved for them, until they are sent
  };
  Memory memory() const;

  // Accepts no more connections, answers the requests that have begun, closes all connections, and
  // returns after that. A second call returns at once.
  void stop();

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace blindfuse::http
