// One client's connection: what has arrived, what is to be sent, and how long it may take. Nothing
// here waits.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "host/server/connections/active_request.h"
#include "host/server/connections/channel.h"

namespace blindfuse {

struct ConnectionTimeouts {
  std::chrono::milliseconds idle{5'000};     // between requests
  std::chrono::milliseconds head{10'000};    // from a request's first byte to the end of its header
  std::chrono::milliseconds body{30'000};    // for a body, plus a second for every 32 KiB of it
  std::chrono::milliseconds answer{30'000};  // from the end of a body until the engine begins
  std::chrono::milliseconds write{10'000};  // without any progress, and for all of a response, plus
                                            // a second for every 32 KiB of it
  std::chrono::milliseconds drain{60'000};  // for all of the above, once the server stops
  std::chrono::milliseconds linger{2'000};  // for a client to take note of a refusal
};

// One thread at a time.
class Connection {
 public:
  using Clock = std::chrono::steady_clock;
  // Never used twice in one server.
  using Id = uint64_t;

  struct Totals {
    std::atomic<size_t> open_count = 0;
    std::atomic<uint64_t> body_bytes = 0;      // of bodies that are arriving
    std::atomic<size_t>* published = nullptr;  // follows open_count; may be none
  };

  Connection(Id id, std::unique_ptr<Channel> channel, std::string peer,
             const ConnectionTimeouts& timeouts, Totals& totals);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Id id() const { return id_; }
  int fd() const { return channel_->fd(); }
  const std::string& peer() const { return peer_; }  // for the access log
  const ConnectionTimeouts& timeouts() const { return timeouts_; }

  // Takes in what has arrived.
  enum class Arrival { kBytes, kNothing, kClosed };
  Arrival receive();
  std::string_view received() const {
    return std::string_view(input_).substr(begin_, end_ - begin_);
  }
  // Has taken `count` bytes of received().
  void consume(size_t count) { begin_ += count; }
  // Takes in more of the request's body; throws what BodyReader throws.
  Arrival receive_body();

  // Puts bytes behind what is to be sent. Lent ones are not copied; `owner` keeps them in memory.
  void send(std::string_view bytes);
  void lend(std::vector<std::span<const uint8_t>> parts, std::shared_ptr<const void> owner);
  // Sends what can be sent now.
  enum class Sending { kDone, kBlocked, kFailed };
  Sending flush();
  uint64_t sent_bytes() const { return sent_bytes_; }

  // The request under way, if there is one.
  std::optional<ActiveRequest>& request() { return request_; }
  const std::optional<ActiveRequest>& request() const { return request_; }
  void begin_request(ActiveRequest request);
  // The engine has the queries of its body, which may go.
  void release_body();
  // Its response has been put behind what is to be sent. unread: a part of it has not been read,
  // and may still be coming.
  void end_request(bool unread);
  unsigned request_count() const { return request_count_; }

  // Nothing more will be answered once all is sent.
  void set_last() { last_ = true; }
  bool is_last() const { return last_; }
  // Whether the client may be sending what nobody will read. Closing a socket then tells it of an
  // error instead of what was written last.
  bool may_be_sending() const;
  bool is_sending() const { return !output_.empty(); }

  // What the connection waits for.
  enum class Interest { kRead, kWrite, kAnswer };
  Interest interest() const;
  bool is_between_requests() const { return !request_ && output_.empty() && !lingering_; }
  // Whether it waits for an answer that has come meanwhile.
  bool has_answer() const { return request_ && request_->answer && request_->answer->is_done(); }

  // While it waits: when to give up.
  void start_waiting(Clock::time_point now);
  Clock::time_point deadline() const { return deadline_; }
  void end_by(Clock::time_point time) { deadline_ = std::min(deadline_, time); }
  // Since when it has had no request.
  Clock::time_point quiet_since() const { return quiet_since_; }
  // Whether the client is to be told that it took too long, rather than just left.
  bool ends_with_words() const { return request_.has_value() && output_.empty(); }
  // For the request under way; a body's is set when it begins.
  void set_request_deadline(Clock::time_point deadline) { request_deadline_ = deadline; }
  // Whether the request, or the part of its header that is there, or the silence before it has
  // taken too long.
  bool is_overdue() const;

  // Says goodbye: sends nothing more, and throws away what still comes.
  void linger();
  bool is_lingering() const { return lingering_; }
  // false when the client has closed too.
  bool discard();

 private:
  // Of what is to be sent: own bytes, or lent ones.
  struct Piece {
    std::string own;
    std::vector<std::span<const uint8_t>> lent;
    std::shared_ptr<const void> owner;

    size_t part_count() const { return owner ? lent.size() : 1; }
    std::string_view part(size_t i) const {
      return owner ? std::string_view(reinterpret_cast<const char*>(lent[i].data()), lent[i].size())
                   : std::string_view(own);
    }
  };

  void begin_output();
  std::string_view next_output(std::span<char> gathered) const;
  void advance_output(size_t count);
  void count_body_bytes();

  const Id id_;
  const std::unique_ptr<Channel> channel_;
  const std::string peer_;
  const ConnectionTimeouts timeouts_;
  Totals& totals_;

  std::string input_;  // empty while nothing is there, or room for a head
  size_t begin_ = 0;
  size_t end_ = 0;

  std::deque<Piece> output_;
  size_t output_part_ = 0;  // of the first piece
  size_t output_at_ = 0;    // of that part
  uint64_t sent_bytes_ = 0;
  bool wants_write_ = false;  // to go on, whatever it does

  std::optional<ActiveRequest> request_;
  unsigned request_count_ = 0;
  uint64_t counted_body_bytes_ = 0;
  bool last_ = false;
  bool lingering_ = false;
  bool unread_ = false;
  Clock::time_point quiet_since_;
  std::optional<Clock::time_point> idle_deadline_;  // while nothing is there
  std::optional<Clock::time_point> head_deadline_;  // while a part of a head is there
  Clock::time_point body_begun_;
  Clock::time_point request_deadline_ = Clock::time_point::max();
  Clock::time_point last_progress_;    // in sending
  Clock::time_point output_deadline_;  // of all of it
  Clock::time_point deadline_;
};

}  // namespace blindfuse
