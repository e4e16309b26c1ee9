#include "host/server/http/connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "src/program/log.h"

namespace blindfuse::http {
namespace {

namespace asio = boost::asio;
using Descriptor = asio::posix::stream_descriptor;
using Wake = SocketWaiter::Wake;

// The time that this many bytes may take, in either direction.
std::chrono::seconds time_for(uint64_t bytes) {
  constexpr uint64_t kBytesPerSecondMin = 32 * 1024;
  return std::chrono::seconds(bytes / kBytesPerSecondMin);
}

}  // namespace

Load Context::load() const {
  Load load{connections.open_count(), connections.body_bytes(), connections.response_bytes(),
            sent_bytes};
  std::ranges::copy(cuts, load.cuts.begin());
  return load;
}

Connection::Connection(asio::any_io_executor strand, std::unique_ptr<Channel> channel,
                       std::string peer, Context& context)
    : context_(context),
      strand_(strand),
      channel_(std::move(channel)),
      peer_(std::move(peer)),
      waiter_(std::make_shared<SocketWaiter>(std::move(strand), channel_->fd())) {}

// The waiter of a connection that never served has to close before the channel closes the socket.
Connection::~Connection() { waiter_->close(); }

// what(connection), on its strand. The caller holds the connection meanwhile, and with it all that
// the strand belongs to.
template <typename Do>
void Connection::post(const std::shared_ptr<Connection>& connection, Do what) {
  if (!connection) return;
  asio::post(connection->strand_, [connection, what] { what(*connection); });
}

void Connection::spawn(std::shared_ptr<Connection> connection) {
  connection->place_.emplace(
      connection->context_.connections, [weak = std::weak_ptr(connection)](auto notice) {
        post(weak.lock(), [notice](Connection& self) { self.on_notice(notice); });
      });
  asio::co_spawn(
      connection->strand_, [connection] { return connection->serve(); }, asio::detached);
}

Awaitable<void> Connection::serve() {
  // Requests that a client has sent ahead do not keep others waiting.
  constexpr unsigned kRequestsAtOnce = 16;
  const auto self = shared_from_this();
  try {
    for (bool more = true; more;) {
      more = co_await serve_request();
      // The memory of the response is free by now.
      place_->release_response();
      place_->enter(Connections::Stage::kBusy);
      if (more && request_count_ % kRequestsAtOnce == 0) co_await waiter_->yield();
    }
    if (!waiter_->has_ended() && may_be_sending()) co_await linger();
  } catch (const std::exception& error) {
    log_error("a connection failed: {}", error.what());
  }
  // The strand does this: another thread may hold the connection last.
  waiter_->close();
}

// Serves one request. Returns false when the connection is to end.
Awaitable<bool> Connection::serve_request() {
  Response response;
  try {
    if (!co_await read_head()) co_return false;
    ++request_count_;
    unread_ = head_->has_body();
    body_bytes_ = 0;
    left_by_ = Descriptor::wait_read;
    response = co_await context_.handler.answer(*this);
  } catch (const Error& error) {
    unread_ = true;
    response = context_.handler.refuse(error, peer_);
  } catch (const ClientLeft&) {
    co_return false;
  }
  release_body();
  const Options& options = context_.options;
  const bool last = !head_ || head_->wants_close || head_->chunked || unread_ ||
                    context_.stopping || response.closes_connection ||
                    request_count_ >= options.requests_per_connection_max;
  std::string lines = "Connection: close\r\n";
  if (!last) {
    const auto idle = std::chrono::duration_cast<std::chrono::seconds>(options.timeouts.idle);
    lines = "Keep-Alive: timeout=" + std::to_string(idle.count()) +
            ", max=" + std::to_string(options.requests_per_connection_max) + "\r\n";
  }
  std::string text = serialize_head(response, lines);
  const bool head_only = head_ && head_->method == "HEAD";
  Output output(std::move(text), std::move(response), head_only);
  const bool sent = co_await write(std::move(output));
  head_.reset();
  co_return sent && !last;
}

// Reads the next head. False when there will be none. Throws Error.
Awaitable<bool> Connection::read_head() {
  const Timeouts& timeouts = context_.options.timeouts;
  // Bytes that are not yet part of a request, as those of a TLS handshake, do not extend the time,
  // nor does every byte.
  const auto begun = Clock::now();
  const auto silence_ends = begun + (request_count_ == 0 ? timeouts.head : timeouts.idle);
  std::optional<Clock::time_point> head_ends;
  for (;;) {
    if (!input_.is_empty()) {
      head_ = parse_request_head(input_.bytes());
      if (head_) {
        input_.consume(head_->byte_count);
        place_->enter(Connections::Stage::kBusy);
        co_return true;
      }
      if (!head_ends) head_ends = Clock::now() + timeouts.head;
    } else {
      input_.release_if_empty();
      place_->enter(Connections::Stage::kQuiet);
    }
    const Channel::Status status = input_.receive(*channel_);
    if (status == Channel::Status::kDone) {
      // A client whose bytes keep the connection awake is never found waiting when its time is up.
      if (head_ends && Clock::now() >= *head_ends) co_return false;
      continue;
    }
    if (status == Channel::Status::kClosed) co_return false;
    if (input_.is_empty()) {
      if (context_.stopping) co_return false;
      input_.release_if_empty();
    } else {
      place_->enter(Connections::Stage::kHead);
    }
    if (!co_await waiter_->wait_for(status, head_ends.value_or(silence_ends))) co_return false;
  }
}

Awaitable<std::span<char>> Connection::read_body(uint64_t bytes_max, uint64_t all_max) {
  // A large body is read in parts, while others wait for this thread. Its bytes are counted as they
  // were sent, since chunks of one byte take longest.
  constexpr uint64_t kBytesAtOnce = 256 << 10;
  const Timeouts& timeouts = context_.options.timeouts;
  BodyReader& body = body_.emplace(*head_, bytes_max);
  if (head_->wants_continue && !head_->is_http_1_0 && input_.is_empty()) {
    co_await write_continue();
  }
  const auto begun = Clock::now();
  auto progress = begun;
  uint64_t at_once = 0;
  place_->enter(Connections::Stage::kBody);
  while (!body.is_whole()) {
    Channel::Status status = Channel::Status::kDone;
    const uint64_t before = body.byte_count();
    if (!input_.is_empty()) {
      const size_t count = body.take(input_.bytes());
      input_.consume(count);
      at_once += count;
    } else if (const std::span<char> room = body.room(); !room.empty()) {
      const auto [read, count] = channel_->read(room);
      status = read;
      body.fill(count);
      at_once += count;
    } else {
      status = input_.receive(*channel_);
    }
    if (body.byte_count() != before) progress = Clock::now();
    // The limits are those of responses: an average rate, and a longest standstill for a client
    // that is ahead of it.
    const auto deadline = std::min(begun + timeouts.body + time_for(body.byte_count()),
                                   progress + timeouts.standstill);
    if (status == Channel::Status::kClosed) throw Error(400, "the body is cut off");
    bool is_in_time = Clock::now() < deadline;
    if (status != Channel::Status::kDone || at_once >= kBytesAtOnce) {
      at_once = 0;
      place_->set_body_bytes(body.byte_count());
      bound_bodies(all_max);
      if (status == Channel::Status::kDone) {
        co_await waiter_->yield();
      } else {
        input_.release_if_empty();
        is_in_time = co_await waiter_->wait_for(status, deadline);
      }
      if (waiter_->has_ended()) throw ClientLeft();
    }
    if (!is_in_time) throw Error(408, "the body did not arrive in time");
  }
  place_->enter(Connections::Stage::kBusy);
  place_->set_body_bytes(body.byte_count());
  unread_ = false;
  co_return body.bytes();
}

void Connection::release_body() {
  if (!body_) return;
  body_bytes_ = body_->byte_count();
  body_.reset();
  place_->set_body_bytes(0);
}

Awaitable<void> Connection::reserve_response(uint64_t bytes, uint64_t all_max,
                                             const std::function<void()>& check) {
  while (!place_->reserve_response(bytes, all_max)) {
    check();
    const std::optional<size_t> ended = place_->make_room(bytes, all_max);
    if (!ended) {
      throw Error(503, "the server has no memory left for responses; try again",
                  {{"Retry-After", "1"}});
    }
    for (size_t i = 0; i < *ended; ++i) {
      context_.note_cut(Cut::kResponseMemory);
      if (const auto count = context_.cut_responses.count()) {
        log_warning(
            "responses fill the {} bytes that they may hold: {} clients that stood still longest "
            "were cut off since the last such message",
            all_max, *count);
      }
    }
    co_await waiter_->yield();
    if (waiter_->has_ended()) throw ClientLeft();
  }
}

std::function<void()> Connection::waker() {
  return [weak = weak_from_this()] {
    post(weak.lock(), [](Connection& self) { self.waiter_->wake(); });
  };
}

Awaitable<bool> Connection::wait_until(const std::function<bool()>& is_done,
                                       Clock::time_point deadline) {
  // A client that has sent the next request already is there; its leaving goes unnoticed.
  input_.release_if_empty();
  while (!is_done()) {
    // The variable has a name because GCC 12 lays the frame out wrong if a coroutine without
    // variables awaits in a condition.
    const Wake wake = co_await waiter_->wait(left_by_, deadline);
    switch (wake) {
      case Wake::kReady:
        if (has_events(POLLHUP)) throw ClientLeft();
        if (left_by_ == Descriptor::wait_error) {
          discard_urgent_byte();
        } else if (has_events(POLLRDHUP)) {
          // The client has closed its sending side, or all of the connection: in the latter case
          // its system answers the interim response with a reset, an error to wait for. With TLS
          // the client's last record is unread then.
          if (head_->is_http_1_0) throw ClientLeft();
          co_await write_continue();
          place_->enter(Connections::Stage::kBusy);
          left_by_ = Descriptor::wait_error;
        } else if (has_unread_bytes()) {
          // The wait ended because of bytes that were read before it began.
          left_by_ = Descriptor::wait_error;
        }
        break;
      case Wake::kTimeout:
        co_return false;
      case Wake::kSpurious:
        break;
      case Wake::kEnded:
        throw ClientLeft();
    }
  }
  co_return true;
}

// A client that does not wait for it skips it (RFC 9110, section 15.2.1). Throws ClientLeft.
Awaitable<void> Connection::write_continue() {
  Output go_on("HTTP/1.1 100 Continue\r\n\r\n", Response{}, true);
  const bool stays = co_await write(std::move(go_on));
  if (!stays) throw ClientLeft();
}

// Returns false when the client does not take it.
Awaitable<bool> Connection::write(Output output) {
  // A large download is sent in parts, while others wait for this thread.
  constexpr uint64_t kBytesAtOnce = 4 << 20;
  const Timeouts& timeouts = context_.options.timeouts;
  const auto begun = Clock::now();
  auto progress = begun;
  bool stood_still = false;
  uint64_t at_once = 0;
  place_->enter(Connections::Stage::kSending, output.memory());
  while (!output.is_empty()) {
    const auto [status, count] = write_some(output);
    if (status == Channel::Status::kClosed) co_return false;
    if (status != Channel::Status::kDone) {
      // The client is slower on the whole than it may be, or is ahead and at a standstill: a client
      // that takes its response steadily opens its window in large steps.
      input_.release_if_empty();
      const auto deadline = std::min(begun + time_for(output.bytes_sent()) + timeouts.write,
                                     progress + timeouts.standstill);
      stood_still = true;
      if (co_await waiter_->wait_for(status, deadline)) continue;
      if (!waiter_->has_ended()) context_.note_cut(Cut::kSlowReader);
      co_return false;
    }
    output.advance(count);
    context_.sent_bytes += count;
    progress = Clock::now();
    if (std::exchange(stood_still, false)) place_->note_progress();
    at_once += count;
    if (at_once >= kBytesAtOnce) {
      at_once = 0;
      co_await waiter_->yield();
      if (waiter_->has_ended()) co_return false;
    }
  }
  co_return true;
}

// TCP's urgent data, which no request has, ends a wait for errors as long as it is not read.
void Connection::discard_urgent_byte() const {
  char byte = 0;
  recv(channel_->fd(), &byte, 1, MSG_OOB | MSG_DONTWAIT);
}

// This is not a coroutine, which may go on in another thread with the address of this thread's
// bytes.
Channel::Result Connection::write_some(const Output& output) {
  static thread_local std::array<char, 16'384> gathered;
  return channel_->write(output.next(gathered));
}

// Sends nothing more, and throws away what still comes: closing a socket that has unread bytes
// tells the client of an error instead of what was written last.
Awaitable<void> Connection::linger() {
  channel_->finish_writing();
  place_->enter(Connections::Stage::kQuiet);
  const auto deadline = Clock::now() + context_.options.timeouts.linger;
  while (!waiter_->has_ended() && Clock::now() < deadline) {
    input_.clear();
    const Channel::Status status = input_.receive(*channel_);
    if (status == Channel::Status::kClosed) co_return;
    if (status == Channel::Status::kDone) {
      // A client may send as fast as this reads.
      co_await waiter_->yield();
    } else if (!co_await waiter_->wait_for(status, deadline)) {
      co_return;
    }
  }
}

bool Connection::may_be_sending() const {
  return unread_ || !input_.is_empty() || has_unread_bytes();
}

// FIONREAD would count none of those that follow TCP's urgent data.
bool Connection::has_unread_bytes() const {
  char byte = 0;
  return recv(channel_->fd(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

// poll() reports errors in any case.
bool Connection::has_events(short events) const {
  pollfd state{.fd = channel_->fd(), .events = events, .revents = 0};
  return poll(&state, 1, 0) > 0;
}

// A client that has nearly sent a long body, and then sends no more, holds its memory until its
// time is up. Newer bodies arrive in a moment.
void Connection::bound_bodies(uint64_t all_max) {
  Connections& all = context_.connections;
  while (all.body_bytes() > all_max && all.end_oldest_body()) {
    context_.note_cut(Cut::kRequestMemory);
    if (const auto count = context_.given_up_bodies.count()) {
      log_warning(
          "bodies that are arriving hold more than {} bytes: {} that took longest were given up "
          "since the last such message",
          all_max, *count);
    }
  }
}

void Connection::on_notice(Connections::Notice notice) {
  notice == Connections::Notice::kEnd ? waiter_->end() : waiter_->wake();
}

}  // namespace blindfuse::http
