// Connections that send a valid request very slowly, and when it is answered, or they are closed,
// begin another.
#pragma once

#include <memory>
#include <vector>

#include "bench/load/http_connection.h"
#include "bench/load/query_pool.h"
#include "bench/load/window.h"

namespace blindfuse::load {

class SlowSenders : public HttpConnection::Owner {
 public:
  SlowSenders(EventLoop& loop, const Endpoint& endpoint, unsigned count, unsigned bytes_per_second,
              Window& window);

  // As those of Generator; pausing breaks the requests off.
  void start(const QueryPool& pool);
  void pause();

 private:
  void on_reply(HttpConnection& connection, Reply reply) override;
  void on_broken(HttpConnection& connection) override;
  void on_closed(HttpConnection& connection) override;
  void begin_later(HttpConnection& connection);
  void begin(HttpConnection& connection);
  void tick();

  EventLoop& loop_;
  const double bytes_a_tick_;
  Window& window_;
  std::vector<std::unique_ptr<HttpConnection>> connections_;
  const QueryPool* pool_ = nullptr;
  size_t next_ = 0;
  uint64_t run_ = 0;
  double allowance_ = 0;  // for each, not given to it yet
  bool is_ticking_ = false;
};

}  // namespace blindfuse::load
