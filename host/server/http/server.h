// An HTTP/1.1 server. It starts when it is constructed, and stops when it is destroyed. It does not
// depend on the service that it serves.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "host/server/http/channel.h"
#include "host/server/http/listening_socket.h"

namespace blindfuse::http {

class Handler;

struct Timeouts {
  std::chrono::milliseconds idle{5'000};    // between requests
  std::chrono::milliseconds head{10'000};   // from a request's first byte to the end of its header
  std::chrono::milliseconds body{30'000};   // for as much of a body as has come, plus a second for
                                            // every 32 KiB of that
  std::chrono::milliseconds write{10'000};  // for as much of a response as is sent, plus a second
                                            // for every 32 KiB of that
  std::chrono::milliseconds standstill{30'000};  // of a client that has sent or taken more
  std::chrono::milliseconds drain{60'000};       // for all of the above, once the server stops
  std::chrono::milliseconds linger{2'000};       // for a client to take note of a refusal
};

// The limits that a server sets its clients.
struct Options {
  unsigned threads = 4;  // at least 1; none of them waits for a client or for the service
  unsigned requests_per_connection_max = 1000;
  size_t connections_max = 1000;  // beyond that, clients that send nothing make room for new ones
  Timeouts timeouts = {};
};

// The reason for which a connection was ended before its time.
enum class Cut {
  kSlowReader,      // it took its response too slowly
  kRequestMemory,   // bodies that were arriving held too much
  kResponseMemory,  // responses that were being sent did
  kLentMemory,      // the service wanted back what it was sent from
  kConnections,     // there were too many
};
inline constexpr size_t kCutCount = 5;

// The clients of a server at the moment, and its work so far.
struct Load {
  size_t connections = 0;
  uint64_t body_bytes = 0;      // of requests that are arriving
  uint64_t response_bytes = 0;  // reserved for responses, until they are sent
  uint64_t sent_bytes = 0;
  std::array<uint64_t, kCutCount> cuts = {};  // connections, by Cut
};

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

  // Any thread.
  Load load() const;

  // Accepts no more connections, answers the requests that have begun, closes all connections, and
  // returns after that. A second call returns at once.
  void stop();

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace blindfuse::http
