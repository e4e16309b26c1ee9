// Connections that say nothing, opened again when the server closes them.
#pragma once

#include <memory>
#include <vector>

#include "bench/load/http_connection.h"
#include "bench/load/window.h"

namespace blindfuse::load {

class IdleConnections : public HttpConnection::Owner {
 public:
  IdleConnections(EventLoop& loop, const Endpoint& endpoint, unsigned count, Window& window);

  void start();

 private:
  // Asked for nothing, it answers nothing.
  void on_reply(HttpConnection&, Reply) override {}
  void on_broken(HttpConnection& connection) override { open_later(connection); }
  void on_closed(HttpConnection& connection) override { open_later(connection); }
  void open_later(HttpConnection& connection);

  EventLoop& loop_;
  Window& window_;
  std::vector<std::unique_ptr<HttpConnection>> connections_;
};

}  // namespace blindfuse::load
