// The fake server of client tests on plain sockets, which sees when a client closes a
// connection.
#pragma once

#include <chrono>
#include <semaphore>
#include <string>

#include "tests/client/client_testing.h"
#include "tests/client/fake_server.h"
#include "tests/client/raw_server.h"

namespace blindfuse {

class WatchedFakeServer {
 public:
  explicit WatchedFakeServer(FakeServer& fake)
      : fake_(fake), server_([this](int connection) { serve(connection); }) {}

  std::string url() const { return server_.url(); }

  // Waits until the client has closed a connection over which it sent queries, each time another
  // one. False after a minute.
  bool has_seen_end() { return ended_.try_acquire_for(std::chrono::minutes(1)); }

 private:
  void serve(int connection) {
    bool has_asked = false;
    for (std::string head = read_head(connection); !head.empty(); head = read_head(connection)) {
      SeenRequest request;
      std::istringstream(head) >> request.method >> request.path;
      has_asked = has_asked || request.method == "POST";
      const size_t length = head.find("Content-Length: ");
      if (length != head.npos) request.body.resize(std::stoul(head.substr(length + 16)));
      if (!request.body.empty()) {
        recv(connection, request.body.data(), request.body.size(), MSG_WAITALL);
      }
      CollectedBody collector;
      const HttpReply reply = fake_.answer(request, collector);
      const std::string body = reply.status == 200 ? collector.text : reply.problem;
      send_all(connection, "HTTP/1.1 " + std::to_string(reply.status) +
                               " Status\r\nContent-Length: " + std::to_string(body.size()) +
                               "\r\n\r\n" + body);
    }
    if (has_asked) ended_.release();
  }

  FakeServer& fake_;
  std::counting_semaphore<> ended_{0};
  RawServer server_;
};

}  // namespace blindfuse
