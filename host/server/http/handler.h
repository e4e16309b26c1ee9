// What a server does with requests: the side of the service.
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

// One request, from its head to its response. Destroyed without a response when its client has
// gone. One thread at a time; no call waits.
class Exchange {
 public:
  virtual ~Exchange() = default;

  // How many bytes its body may have; nothing when the request is answered without reading one. A
  // longer body is refused with 413.
  virtual std::optional<uint64_t> body_bytes_max() const { return std::nullopt; }

  // The body is whole. The span may be written to, and lies there until start() has returned. Says
  // the most memory that the response will take, from start() until it is sent; 0 when the request
  // is refused. Not what a response lends (http::Body). Does not throw.
  virtual uint64_t take_body(std::span<char> /*body*/) { return 0; }

  // Asked before others are let go to make room for the response. False when the request has come
  // to be refused meanwhile. Does not throw.
  virtual bool wants_room() { return true; }

  // There is room for the response. Nothing: respond() has all that it needs. Otherwise work goes
  // on elsewhere: `on_done` is called once, from any thread, when is_done() has become true, and
  // the time returned is when to give up. Does not throw.
  virtual std::optional<Clock::time_point> start(std::function<void()> /*on_done*/) {
    return std::nullopt;
  }
  virtual bool is_done() const { return true; }
  // The time is up. False when the work has begun, so that it will be done.
  virtual bool give_up() { return true; }

  // The last call: one of these two. Neither throws.
  virtual Response respond() = 0;
  // Instead, when the body does not come as it should. body_bytes: as many as have come.
  virtual Response refuse(const Error& error, uint64_t body_bytes) = 0;
};

// Why a connection was ended before its time.
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

  // A request whose head has arrived, from a client of this address. Never throws, nor nullptr.
  virtual std::unique_ptr<Exchange> begin(RequestHead head, const std::string& peer) = 0;
  // The response to bytes that are not a request. The connection ends with it. Never throws.
  virtual Response refuse(const Error& error, const std::string& peer) = 0;

  // The most that all bodies may hold while they arrive. When there is more, the one that has been
  // arriving longest is given up.
  virtual uint64_t all_bodies_bytes_max() const = 0;
  // The most that all responses may hold, from Exchange::start() until they are sent. When there is
  // more, those go that have stood still longest while theirs is sent, and where none is sent, who
  // comes is refused with 503.
  virtual uint64_t all_responses_bytes_max() const = 0;

  // For whoever counts.
  virtual void on_connection_opened() {}
  virtual void on_connection_closed() {}
  virtual void on_sent(uint64_t /*bytes*/) {}
  virtual void on_cut(Cut /*why*/, size_t /*count*/) {}
};

}  // namespace blindfuse::http
