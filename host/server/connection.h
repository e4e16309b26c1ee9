// One client's TCP connection: what the HTTP library reads from and writes to, with limits and
// deadlines.
#pragma once

#include <httplib.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "host/server/request_head.h"
#include "src/system/file.h"

namespace blindfuse {

struct ConnectionTimeouts {
  std::chrono::milliseconds idle{5'000};    // between requests
  std::chrono::milliseconds head{10'000};   // from a request's first byte to the end of its header
  std::chrono::milliseconds body{30'000};   // for a body, plus a second for every 32 KiB of it
  std::chrono::milliseconds write{10'000};  // without any progress
  std::chrono::milliseconds linger{2'000};  // for a client to take note of a refusal
};

// One thread at a time.
class Connection final : public httplib::Stream {
 public:
  using Clock = std::chrono::steady_clock;

  // A non-blocking socket. open_count counts the connections there are.
  Connection(FileDescriptor socket, const ConnectionTimeouts& timeouts,
             std::atomic<size_t>& open_count);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int fd() const { return socket_.get(); }

  // Takes in what has arrived, without waiting.
  enum class Arrival { kBytes, kNothing, kClosed };
  Arrival receive();
  std::string_view received() const { return {buffer_.data() + begin_, end_ - begin_}; }

  // From now on read() gives the request at the beginning of received(): its head, but for its
  // Range header, and its body; no byte of the next. A chunked body is cut off after
  // chunked_bytes_max, framing included.
  void begin_request(const RequestHead& head, uint64_t chunked_bytes_max);
  unsigned request_count() const { return request_count_; }
  // Whether bytes of the request, or such as may be its own, have not been read.
  bool has_unread_body() const { return chunked_ || readable_ > 0; }
  // Whether a chunked body went on beyond its limit.
  bool is_cut_off() const { return chunked_ && readable_ == 0; }
  // Whether the request did not arrive in time.
  bool timed_out() const { return timed_out_; }
  // Whether bytes are there that nobody has read. Closing a socket then tells the client of an
  // error instead of what was written last.
  bool has_unread_bytes() const;

  // false when the client does not take them.
  bool send_all(std::string_view bytes);

  // While nothing is to be done until bytes arrive: when to give up.
  void start_waiting(Clock::time_point now);
  Clock::time_point deadline() const { return deadline_; }

  // Says goodbye: sends nothing more, and throws away what still comes.
  void linger();
  bool is_lingering() const { return lingering_; }
  // false when the client has closed too.
  bool discard();

  // httplib::Stream
  ssize_t read(char* bytes, size_t size) override;
  ssize_t write(const char* bytes, size_t size) override;
  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return fd(); }

 private:
  bool wait_for_bytes();

  FileDescriptor socket_;
  const ConnectionTimeouts timeouts_;
  std::atomic<size_t>& open_count_;

  std::array<char, kHeadBytesMax> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;

  unsigned request_count_ = 0;
  uint64_t readable_ = 0;  // bytes of the request that read() may still give
  bool chunked_ = false;
  bool timed_out_ = false;
  bool lingering_ = false;
  std::optional<Clock::time_point> head_deadline_;  // while a part of a head is there
  Clock::time_point deadline_;
};

}  // namespace blindfuse
