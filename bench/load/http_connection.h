// A keep-alive connection of one client: one request at a time.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "bench/load/event_loop.h"
#include "bench/load/response_reader.h"
#include "bench/load/stream.h"

namespace blindfuse::load {

struct Reply {
  int status = 0;
  std::optional<uint64_t> retry_after_s;
  std::string body;  // when it was to be kept
};

class HttpConnection : public EventHandler {
 public:
  // Told what becomes of a connection; never from within a call of one of its functions, but for
  // close(), which tells nobody.
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void on_reply(HttpConnection& connection, Reply reply) = 0;
    // No answer will come, or no connection.
    virtual void on_broken(HttpConnection& connection) = 0;
    // The server closed it while nothing was asked.
    virtual void on_closed(HttpConnection&) {}
  };

  // Counts of all its life.
  struct Traffic {
    uint64_t bytes_up = 0;  // within TLS
    uint64_t bytes_down = 0;
    uint64_t opened = 0;
  };

  // `id` is its owner's name for it.
  HttpConnection(EventLoop& loop, const Endpoint& endpoint, Owner& owner, size_t id)
      : loop_(loop), endpoint_(endpoint), owner_(owner), id_(id) {}

  size_t id() const { return id_; }

  // Connects unless it is connected. Throws EngineTrouble when the system gives no socket.
  void open();

  // Sends a whole request, which must stay where it is until it is answered. At most `allowed`
  // bytes of it at first.
  void send(std::string_view request, bool keep_body,
            size_t allowed = std::numeric_limits<size_t>::max());
  // Lets the connection send that many more.
  void allow(size_t bytes);

  void close();

  bool is_open() const { return stream_.has_value(); }
  bool is_busy() const { return busy_; }
  const Traffic& traffic() const { return traffic_; }

  void on_ready() override;

 private:
  Stream::Status write_allowed();
  bool read_some();
  bool take(std::string_view bytes);
  void break_off();

  EventLoop& loop_;
  const Endpoint& endpoint_;
  Owner& owner_;
  const size_t id_;
  std::optional<Stream> stream_;
  ResponseReader reader_;
  std::string_view to_write_;
  size_t allowed_ = 0;
  bool busy_ = false;
  Traffic traffic_;
};

}  // namespace blindfuse::load
