#include "bench/load/channel.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "bench/load/interruption.h"
#include "src/base/errors.h"

namespace blindfuse::load {

std::pair<Channel, Channel> Channel::make() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw EngineTrouble(std::string("cannot talk between processes: ") + std::strerror(errno));
  }
  return {Channel(ends[0]), Channel(ends[1])};
}

void Channel::send(const nlohmann::json& message) {
  const std::string line =
      message.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
  for (size_t at = 0; at < line.size();) {
    const ssize_t sent = ::send(fd(), line.data() + at, line.size() - at, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) throw EngineTrouble("another process of the load has ended");
    at += static_cast<size_t>(sent);
  }
}

std::optional<nlohmann::json> Channel::receive() {
  std::optional<nlohmann::json> message;
  while (!poll(message)) {
    throw_if_interrupted();
    pollfd readable = {fd(), POLLIN, 0};
    ::poll(&readable, 1, -1);
  }
  return message;
}

bool Channel::poll(std::optional<nlohmann::json>& message) {
  std::array<char, 65'536> bytes;
  while (!ended_ && buffer_.find('\n') == std::string::npos) {
    const ssize_t got = recv(fd(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    if (got <= 0) ended_ = true;
    if (got > 0) buffer_.append(bytes.data(), static_cast<size_t>(got));
  }
  message = take_line();
  return true;
}

std::optional<nlohmann::json> Channel::take_line() {
  const size_t end = buffer_.find('\n');
  if (end == std::string::npos) return std::nullopt;
  nlohmann::json message = nlohmann::json::parse(buffer_.substr(0, end));
  buffer_.erase(0, end + 1);
  return message;
}

}  // namespace blindfuse::load
