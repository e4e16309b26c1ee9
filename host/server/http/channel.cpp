#include "host/server/http/channel.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "host/server/http/request_head.h"

namespace blindfuse::http {
namespace {

class PlainChannel final : public Channel {
 public:
  explicit PlainChannel(FileDescriptor socket) : socket_(std::move(socket)) {}

  int fd() const override { return socket_.get(); }

  Result read(std::span<char> into) override {
    for (;;) {
      const ssize_t got = recv(fd(), into.data(), into.size(), 0);
      if (got > 0) return {Status::kDone, static_cast<size_t>(got)};
      if (got == 0) return {Status::kClosed};
      if (errno == EAGAIN || errno == EWOULDBLOCK) return {Status::kWantRead};
      if (errno != EINTR) return {Status::kClosed};
    }
  }

  Result write(std::string_view bytes) override {
    for (;;) {
      const ssize_t put = send(fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (put > 0) return {Status::kDone, static_cast<size_t>(put)};
      if (put == 0 || errno == EAGAIN || errno == EWOULDBLOCK) return {Status::kWantWrite};
      if (errno != EINTR) return {Status::kClosed};
    }
  }

  void finish_writing() override { shutdown(fd(), SHUT_WR); }

 private:
  const FileDescriptor socket_;
};

}  // namespace

std::unique_ptr<Channel> make_plain_channel(FileDescriptor socket) {
  return std::make_unique<PlainChannel>(std::move(socket));
}

Channel::Status Input::receive(Channel& channel) {
  if (!memory_) memory_ = std::make_unique_for_overwrite<char[]>(kHeadBytesMax);
  std::memmove(memory_.get(), memory_.get() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  const auto [status, count] = channel.read(std::span(memory_.get(), kHeadBytesMax).subspan(end_));
  end_ += count;
  return status;
}

void Input::release_if_empty() {
  if (!is_empty()) return;
  memory_.reset();
  clear();
}

}  // namespace blindfuse::http
