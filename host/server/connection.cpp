#include "host/server/connection.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace blindfuse {
namespace {

constexpr uint64_t kBodyBytesPerSecondMin = 32 * 1024;
constexpr uint64_t kBodyBytesMax = uint64_t{1} << 40;

// Whether the socket got ready before the deadline.
bool wait_until_ready(int fd, short events, Connection::Clock::time_point deadline) {
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - Connection::Clock::now());
    if (left.count() <= 0) return false;
    // Bounded, because poll takes an int.
    const auto timeout_ms = static_cast<int>(std::min<int64_t>(left.count(), 60'000));
    pollfd waiting{fd, events, 0};
    const int ready = poll(&waiting, 1, timeout_ms);
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK; }

}  // namespace

Connection::Connection(FileDescriptor socket, const ConnectionTimeouts& timeouts,
                       std::atomic<size_t>& open_count)
    : socket_(std::move(socket)), timeouts_(timeouts), open_count_(open_count) {
  ++open_count_;
}

Connection::~Connection() { --open_count_; }

Connection::Arrival Connection::receive() {
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  for (;;) {
    const ssize_t got = recv(fd(), buffer_.data() + end_, buffer_.size() - end_, 0);
    if (got > 0) {
      end_ += static_cast<size_t>(got);
      return Arrival::kBytes;
    }
    if (got == 0) return Arrival::kClosed;
    if (would_block()) return Arrival::kNothing;
    if (errno != EINTR) return Arrival::kClosed;
  }
}

void Connection::begin_request(const RequestHead& head, uint64_t chunked_bytes_max) {
  ++request_count_;
  chunked_ = head.chunked;
  timed_out_ = false;
  // A length that nobody will ever send still has to leave room for the head.
  const uint64_t body_bytes =
      std::min(chunked_ ? chunked_bytes_max : head.content_length.value_or(0), kBodyBytesMax);
  readable_ = head.byte_count + body_bytes;
  head_deadline_.reset();
  deadline_ =
      Clock::now() + timeouts_.body + std::chrono::seconds(body_bytes / kBodyBytesPerSecondMin);
  // cpp-httplib 0.11.4 refuses what it cannot parse as a range, whatever the route, and does not
  // check ranges against the size of what it sends, so it does not get to see any: the header gets
  // a name that nothing knows.
  if (head.range_name_at != 0) buffer_[begin_ + head.range_name_at] = 'x';
}

bool Connection::has_unread_bytes() const {
  int count = 0;
  return begin_ < end_ || (ioctl(fd(), FIONREAD, &count) == 0 && count > 0);
}

bool Connection::send_all(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = write(bytes.data(), bytes.size());
    if (put < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(put));
  }
  return true;
}

void Connection::start_waiting(Clock::time_point now) {
  if (lingering_) return;
  if (begin_ == end_) {
    deadline_ = now + timeouts_.idle;
  } else {
    // Not put off by every byte that arrives.
    if (!head_deadline_) head_deadline_ = now + timeouts_.head;
    deadline_ = *head_deadline_;
  }
}

void Connection::linger() {
  shutdown(fd(), SHUT_WR);
  lingering_ = true;
  deadline_ = Clock::now() + timeouts_.linger;
}

bool Connection::discard() {
  begin_ = end_ = 0;
  switch (receive()) {
    case Arrival::kBytes:
      begin_ = end_ = 0;
      return true;
    case Arrival::kNothing:
      return true;
    case Arrival::kClosed:
      break;
  }
  return false;
}

ssize_t Connection::read(char* bytes, size_t size) {
  size = static_cast<size_t>(std::min<uint64_t>(size, readable_));
  if (size == 0) return 0;
  if (begin_ == end_ && !wait_for_bytes()) return -1;
  size = std::min(size, end_ - begin_);
  std::memcpy(bytes, buffer_.data() + begin_, size);
  begin_ += size;
  readable_ -= size;
  return static_cast<ssize_t>(size);
}

bool Connection::wait_for_bytes() {
  for (;;) {
    const Arrival arrival = receive();
    if (arrival != Arrival::kNothing) return arrival == Arrival::kBytes;
    if (!wait_until_ready(fd(), POLLIN, deadline_)) {
      timed_out_ = true;
      return false;
    }
  }
}

ssize_t Connection::write(const char* bytes, size_t size) {
  for (;;) {
    const ssize_t put = send(fd(), bytes, size, MSG_NOSIGNAL);
    if (put >= 0) return put;
    if (errno == EINTR) continue;
    if (!would_block()) return -1;
    if (!wait_until_ready(fd(), POLLOUT, Clock::now() + timeouts_.write)) return -1;
  }
}

}  // namespace blindfuse
