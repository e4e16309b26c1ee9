// A server for client tests that does with every connection what a test says, byte for byte.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <functional>
#include <string>
#include <string_view>
#include <thread>

#include "src/system/file.h"

namespace blindfuse {

// Sends all of it, or false.
inline bool send_all(int connection, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

// The head of a request, with its empty line; what came of it when the client closed.
inline std::string read_head(int connection) {
  std::string head;
  char byte = 0;
  while (!head.ends_with("\r\n\r\n") && recv(connection, &byte, 1, 0) == 1) head += byte;
  return head;
}

// Until the client closes.
inline void read_all(int connection) {
  char bytes[4096];
  while (recv(connection, bytes, sizeof bytes, 0) > 0) {
  }
}

class RawServer {
 public:
  // Does this with one connection after another, and closes each.
  explicit RawServer(std::function<void(int connection)> serve) : serve_(std::move(serve)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* const any_address = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(listener_.get(), any_address, length), 0);
    EXPECT_EQ(listen(listener_.get(), 1), 0);
    EXPECT_EQ(getsockname(listener_.get(), any_address, &length), 0);
    at_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    thread_ = std::thread([this] {
      for (;;) {
        const FileDescriptor connection(accept(listener_.get(), nullptr, nullptr));
        if (!connection.is_open()) return;
        serve_(connection.get());
      }
    });
  }
  // Reads what comes, and sends this.
  explicit RawServer(std::string answer)
      : RawServer([answer = std::move(answer)](int connection) {
          char request[4096];
          if (recv(connection, request, sizeof request, 0) > 0) send_all(connection, answer);
        }) {}
  ~RawServer() {
    shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }
  std::string url() const { return "http://" + at_; }
  std::string https_url() const { return "https://" + at_; }

 private:
  const std::function<void(int)> serve_;
  const FileDescriptor listener_{socket(AF_INET, SOCK_STREAM, 0)};
  std::string at_;
  std::thread thread_;
};

}  // namespace blindfuse
