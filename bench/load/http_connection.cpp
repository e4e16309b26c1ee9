#include "bench/load/http_connection.h"

#include <blindfuse/errors.h>

#include <algorithm>
#include <array>

#include "src/base/errors.h"

namespace blindfuse::load {

void HttpConnection::open() {
  if (stream_) return;
  stream_.emplace(endpoint_);
  ++traffic_.opened;
  loop_.watch(stream_->fd(), *this);
}

void HttpConnection::send(std::string_view request, bool keep_body, size_t allowed) {
  invariant(!busy_, "a connection carries one request at a time");
  busy_ = true;
  to_write_ = request;
  allowed_ = allowed;
  reader_.begin(keep_body);
  const bool was_open = is_open();
  open();
  // A new connection is ready later. That writing fails will be seen when reading does.
  if (was_open && stream_->is_established()) write_allowed();
}

void HttpConnection::allow(size_t bytes) {
  if (!busy_ || !stream_) return;
  allowed_ += bytes;
  if (stream_->is_established()) write_allowed();
}

void HttpConnection::close() {
  stream_.reset();
  to_write_ = {};
  busy_ = false;
}

void HttpConnection::on_ready() {
  if (!stream_) return;
  const Stream::Status established = stream_->establish();
  if (established == Stream::Status::kWait) return;
  if (established == Stream::Status::kClosed) return break_off();
  // A server that refuses closes its side early: what it said is read before that counts.
  write_allowed();
  const uint64_t opened = traffic_.opened;
  while (stream_ && opened == traffic_.opened && read_some()) {
  }
}

Stream::Status HttpConnection::write_allowed() {
  std::string_view now = to_write_.substr(0, allowed_);
  const size_t before = now.size();
  const Stream::Status status = stream_->write(now);
  const size_t written = before - now.size();
  traffic_.bytes_up += written;
  to_write_.remove_prefix(written);
  allowed_ -= written;
  return status;
}

// False when nothing more is to be read now.
bool HttpConnection::read_some() {
  static thread_local std::array<char, 65'536> buffer;
  size_t count = 0;
  const Stream::Status status = stream_->read(buffer, count);
  if (status == Stream::Status::kWait) return false;
  if (status == Stream::Status::kClosed) {
    if (busy_ && reader_.finish()) {
      take({});
    } else {
      break_off();
    }
    return false;
  }
  traffic_.bytes_down += count;
  try {
    return take({buffer.data(), count});
  } catch (const ProtocolViolation&) {
    break_off();
    return false;
  }
}

// False when the connection is broken by it.
bool HttpConnection::take(std::string_view bytes) {
  if (!busy_) {  // an answer to nothing
    break_off();
    return false;
  }
  const size_t fed = reader_.feed(bytes);
  if (!reader_.is_complete()) return true;
  // What follows an answer, or is not sent yet, belongs to nothing.
  if (reader_.closes() || !to_write_.empty() || fed < bytes.size()) close();
  busy_ = false;
  owner_.on_reply(*this, {reader_.status(), reader_.retry_after_s(), reader_.take_body()});
  return true;
}

void HttpConnection::break_off() {
  const bool was_busy = busy_;
  const bool was_ready = stream_->is_established();
  close();
  if (was_busy || !was_ready) {
    owner_.on_broken(*this);
  } else {
    owner_.on_closed(*this);
  }
}

}  // namespace blindfuse::load
