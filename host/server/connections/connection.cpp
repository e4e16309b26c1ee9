#include "host/server/connections/connection.h"

#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace blindfuse {
namespace {

// What this many bytes may take, either way.
std::chrono::seconds time_for(uint64_t bytes) {
  constexpr uint64_t kBytesPerSecondMin = 32 * 1024;
  return std::chrono::seconds(bytes / kBytesPerSecondMin);
}

}  // namespace

Connection::Connection(Id id, std::unique_ptr<Channel> channel, std::string peer,
                       const ConnectionTimeouts& timeouts, Totals& totals)
    : id_(id),
      channel_(std::move(channel)),
      peer_(std::move(peer)),
      timeouts_(timeouts),
      totals_(totals),
      quiet_since_(Clock::now()) {
  ++totals_.open_count;
  if (totals_.published != nullptr) ++*totals_.published;
}

Connection::~Connection() {
  // The engine need not answer whom nobody can.
  if (request_ && request_->answer) request_->answer->drop();
  totals_.body_bytes -= counted_body_bytes_;
  --totals_.open_count;
  if (totals_.published != nullptr) --*totals_.published;
}

Connection::Arrival Connection::receive() {
  if (input_.empty()) input_.resize(kHeadBytesMax);
  std::memmove(input_.data(), input_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  const auto [status, count] = channel_->read(std::span(input_).subspan(end_));
  end_ += count;
  wants_write_ = status == Channel::Status::kWantWrite;
  if (status == Channel::Status::kDone) return Arrival::kBytes;
  return status == Channel::Status::kClosed ? Arrival::kClosed : Arrival::kNothing;
}

Connection::Arrival Connection::receive_body() {
  BodyReader& body = *request_->body;
  if (begin_ < end_) {
    consume(body.take(received()));
    count_body_bytes();
    return Arrival::kBytes;
  }
  const std::span<char> room = body.room();
  if (room.empty()) return receive();
  const auto [status, count] = channel_->read(room);
  wants_write_ = status == Channel::Status::kWantWrite;
  if (status == Channel::Status::kClosed) return Arrival::kClosed;
  if (status != Channel::Status::kDone) return Arrival::kNothing;
  body.fill(count);
  count_body_bytes();
  return Arrival::kBytes;
}

void Connection::count_body_bytes() {
  const uint64_t now = request_ && request_->body ? request_->body->bytes().size() : 0;
  totals_.body_bytes += now - counted_body_bytes_;
  counted_body_bytes_ = now;
  // Chunks say how long they are only as they come.
  if (request_ && request_->head.chunked && !request_->answer) {
    request_deadline_ = body_begun_ + timeouts_.body + time_for(now);
  }
}

void Connection::release_body() {
  request_->body->let_go();
  count_body_bytes();
}

void Connection::begin_output() {
  if (!output_.empty()) return;
  last_progress_ = Clock::now();
  output_deadline_ = last_progress_ + timeouts_.write;
}

void Connection::send(std::string_view bytes) {
  begin_output();
  if (output_.empty() || output_.back().owner) output_.emplace_back();
  output_.back().own.append(bytes);
  output_deadline_ += time_for(bytes.size());
}

void Connection::lend(std::vector<std::span<const uint8_t>> parts,
                      std::shared_ptr<const void> owner) {
  begin_output();
  uint64_t size = 0;
  for (const auto part : parts) size += part.size();
  output_deadline_ += time_for(size);
  output_.push_back({{}, std::move(parts), std::move(owner)});
}

// What to write next: a part as it lies in memory, or small ones together in `gathered`.
std::string_view Connection::next_output(std::span<char> gathered) const {
  size_t size = 0;
  size_t at = output_at_;
  size_t part = output_part_;
  for (const Piece& piece : output_) {
    for (; part < piece.part_count(); ++part, at = 0) {
      const std::string_view bytes = piece.part(part).substr(at);
      if (size == 0 && bytes.size() >= gathered.size()) return bytes;
      if (bytes.size() > gathered.size() - size) return {gathered.data(), size};
      std::ranges::copy(bytes, gathered.begin() + static_cast<ptrdiff_t>(size));
      size += bytes.size();
    }
    part = 0;
  }
  return {gathered.data(), size};
}

void Connection::advance_output(size_t count) {
  sent_bytes_ += count;
  while (!output_.empty()) {
    const Piece& piece = output_.front();
    for (; output_part_ < piece.part_count(); ++output_part_, output_at_ = 0) {
      const size_t left = piece.part(output_part_).size() - output_at_;
      if (count < left) {
        output_at_ += count;
        return;
      }
      count -= left;
    }
    output_.pop_front();
    output_part_ = output_at_ = 0;
  }
}

Connection::Sending Connection::flush() {
  // Not all of a large download at once, while others wait for this thread.
  constexpr uint64_t kBytesAtOnce = 4 << 20;
  const uint64_t stop_at = sent_bytes_ + kBytesAtOnce;
  std::array<char, 16'384> gathered;
  while (!output_.empty()) {
    if (sent_bytes_ >= stop_at) {
      wants_write_ = true;
      return Sending::kBlocked;
    }
    const auto [status, count] = channel_->write(next_output(gathered));
    wants_write_ = status == Channel::Status::kWantWrite;
    if (status == Channel::Status::kClosed) return Sending::kFailed;
    if (status != Channel::Status::kDone) return Sending::kBlocked;
    advance_output(count);
    last_progress_ = Clock::now();
  }
  return Sending::kDone;
}

void Connection::begin_request(ActiveRequest request) {
  ++request_count_;
  idle_deadline_.reset();
  head_deadline_.reset();
  // A length that is refused anyway may be any number.
  const uint64_t length =
      std::min<uint64_t>(request.head.content_length.value_or(0), uint64_t{1} << 40);
  body_begun_ = Clock::now();
  request_deadline_ = body_begun_ + timeouts_.body + time_for(length);
  request_.emplace(std::move(request));
}

bool Connection::is_overdue() const {
  const auto now = Clock::now();
  if (request_) return now >= request_deadline_;
  const auto& deadline = begin_ == end_ ? idle_deadline_ : head_deadline_;
  return deadline && now >= *deadline;
}

void Connection::end_request(bool unread) {
  request_.reset();
  count_body_bytes();
  unread_ = unread_ || unread;
  quiet_since_ = Clock::now();
}

bool Connection::may_be_sending() const {
  int count = 0;
  return unread_ || begin_ < end_ || (ioctl(fd(), FIONREAD, &count) == 0 && count > 0);
}

Connection::Interest Connection::interest() const {
  if (wants_write_) return Interest::kWrite;
  // A channel that has to read before it can send says so by not wanting to write.
  if (request_ && request_->answer && output_.empty()) return Interest::kAnswer;
  return Interest::kRead;
}

void Connection::start_waiting(Clock::time_point now) {
  if (lingering_) return;
  if (!output_.empty()) {
    deadline_ = std::min(last_progress_ + timeouts_.write, output_deadline_);
  } else if (request_) {
    deadline_ = request_deadline_;
  } else if (begin_ == end_) {
    // Not put off by what is not yet a byte of a request: a handshake, a part of TLS's record.
    if (!idle_deadline_)
      idle_deadline_ = now + (request_count_ == 0 ? timeouts_.head : timeouts_.idle);
    deadline_ = *idle_deadline_;
    // A thousand clients that say nothing need no memory to say it in.
    input_ = std::string();
    begin_ = end_ = 0;
  } else {
    // Not put off by every byte that arrives.
    if (!head_deadline_) head_deadline_ = now + timeouts_.head;
    deadline_ = *head_deadline_;
  }
}

void Connection::linger() {
  channel_->finish_writing();
  lingering_ = true;
  deadline_ = Clock::now() + timeouts_.linger;
}

bool Connection::discard() {
  begin_ = end_ = 0;
  const Arrival arrival = receive();
  begin_ = end_ = 0;
  return arrival != Arrival::kClosed;
}

}  // namespace blindfuse
