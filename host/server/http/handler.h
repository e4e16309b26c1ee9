// The interface between the HTTP server and the service that handles its requests.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "host/server/http/error.h"
#include "host/server/http/request_head.h"
#include "host/server/http/response.h"

namespace blindfuse::http {

using Clock = std::chrono::steady_clock;

// One request, from its head to its response. Destroyed without a response if its client has left.
// One thread at a time. No call waits.
class Exchange {
 public:
  virtual ~Exchange() = default;

  // The number of bytes that its body may have. Nothing if the request is answered without reading
  // a body. A longer body is refused with 413.
  virtual std::optional<uint64_t> body_bytes_max() const { return std::nullopt; }

  // The body is complete. The span may be written to, and is valid until start() has returned.
  // Returns the most memory that the response will take, from start() until it is sent, and 0 if
  // the request is refused. Memory that a response lends (http::Body) does not count. Does not
  // throw.
  virtual uint64_t take_body(std::span<char> /*body*/) { return 0; }

  // Called before other connections are ended to make room for the response. Returns false if the
  // request is to be refused by now. Does not throw.
  virtual bool wants_room() { return true; }

  // There is room for the response. Returns nothing if respond() has all that it needs. Otherwise
  // work goes on elsewhere: `on_done` is called once, from any thread, when is_done() has become
  // true, and the returned time is that of giving up. Does not throw.
  virtual std::optional<Clock::time_point> start(std::function<void()> /*on_done*/) {
    return std::nullopt;
  }
  virtual bool is_done() const { return true; }
  // The time is up. Returns false if the work has begun, so that it will be done.
  virtual bool give_up() { return true; }

  // The last call is one of these two. Neither throws.
  virtual Response respond() = 0;
  // Called instead if the body fails to arrive as it should. body_bytes: the number of bytes that
  // have come.
  virtual Response refuse(const Error& error, uint64_t body_bytes) = 0;
};

// The reason for which a connection was ended before its time.
enum class Cut {
  kSlowReader,      // it took its response too slowly
  kRequestMemory,   // bodies that were arriving held too much
  kResponseMemory,  // responses that were being sent did
  kLentMemory,      // the service wanted back what it was sent from
  kConnections,     // there were too many
};

// Any thread, several at a time.
class Handler {
 public:
  virtual ~Handler() = default;

  // Handles a request whose head has arrived, from a client of this address. Never throws, and
  // never returns nullptr.
  virtual std::unique_ptr<Exchange> begin(RequestHead head, const std::string& peer) = 0;
  // The response to bytes that are not a request. The connection ends with it. Never throws.
  virtual Response refuse(const Error& error, const std::string& peer) = 0;

  // The most bytes that all bodies may hold while they arrive. If there are more, the connection
  // whose body has been arriving longest is ended.
  virtual uint64_t all_bodies_bytes_max() const = 0;
  // The most bytes that all responses may hold, from Exchange::start() until they are sent. If
  // there are more, the connections are ended whose responses have stood still longest while they
  // are sent. If none is being sent, new requests are refused with 503.
  virtual uint64_t all_responses_bytes_max() const = 0;

  // For counting.
  virtual void on_connection_opened() {}
  virtual void on_connection_closed() {}
  virtual void on_sent(uint64_t /*bytes*/) {}
  virtual void on_cut(Cut /*why*/, size_t /*count*/) {}
};

}  // namespace blindfuse::http
