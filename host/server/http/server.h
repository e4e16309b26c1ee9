// An HTTP/1.1 server: starts when constructed, stops when destroyed. It knows nothing of the
// service that it serves.
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
  // Clients can connect from here on. The handler outlives the server. Without a certificate
  // clients speak plain HTTP. Throws InputError when the socket's address cannot be listened on any
  // more, UsageError for no thread at all, ResourceError when threads cannot be started.
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

  // What requests and responses hold at the moment, in bytes. Any thread.
  struct Memory {
    uint64_t bodies = 0;     // of requests that are arriving
    uint64_t responses = 0;  // reserved for them, until they are sent
  };
  Memory memory() const;

  // Accepts no more connections, answers the requests that have begun, closes all connections, and
  // returns when that is done. Again: returns at once.
  void stop();

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace blindfuse::http
