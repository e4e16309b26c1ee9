// JSON messages between a process and its parent, a line each.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "src/system/file.h"

namespace blindfuse::load {

class Channel {
 public:
  // Two ends.
  static std::pair<Channel, Channel> make();

  int fd() const { return socket_.get(); }

  // Throws EngineTrouble when the other end is closed.
  void send(const nlohmann::json& message);

  // The next message, waiting for it; nothing when the other end is closed. Throws what
  // throw_if_interrupted() does.
  std::optional<nlohmann::json> receive();

  // Takes what has arrived, without waiting: false when there is no whole message yet.
  bool poll(std::optional<nlohmann::json>& message);

 private:
  explicit Channel(int fd) : socket_(fd) {}
  std::optional<nlohmann::json> take_line();

  FileDescriptor socket_;
  std::string buffer_;
  bool ended_ = false;
};

}  // namespace blindfuse::load
