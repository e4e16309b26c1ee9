#include "host/server/connections/parked_connections.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "src/errors.h"

namespace blindfuse {
namespace {

// How exactly deadlines are kept.
constexpr std::chrono::milliseconds kCheckInterval{100};

// What an event is of: these two, or a connection, whose numbers begin behind them.
constexpr uint64_t kListener = 0;
constexpr uint64_t kWake = 1;

bool add(int poll, int fd, uint64_t id, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  return epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event) == 0;
}

void remove(int poll, int fd) { epoll_ctl(poll, EPOLL_CTL_DEL, fd, nullptr); }

uint32_t events_of(Connection::Interest interest) {
  switch (interest) {
    case Connection::Interest::kRead:
      return EPOLLIN | EPOLLRDHUP;
    case Connection::Interest::kWrite:
      return EPOLLOUT;
    case Connection::Interest::kAnswer:
      return EPOLLRDHUP;
  }
  return 0;
}

}  // namespace

ParkedConnections::ParkedConnections()
    : poll_(epoll_create1(EPOLL_CLOEXEC)), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!poll_.is_open() || !wake_.is_open() || !add(poll_.get(), wake_.get(), kWake, EPOLLIN)) {
    throw EngineTrouble(std::string("cannot wait for connections: ") + std::strerror(errno));
  }
}

void ParkedConnections::park(std::unique_ptr<Connection> connection) {
  connection->start_waiting(Connection::Clock::now());
  {
    const std::lock_guard lock(mutex_);
    connection->end_by(end_);
    if (!connection->has_answer()) {
      const uint32_t events =
          connection->is_lingering() ? uint32_t{EPOLLIN} : events_of(connection->interest());
      if (add(poll_.get(), connection->fd(), connection->id(), events)) {
        const Connection::Id id = connection->id();
        parked_[id] = std::move(connection);
      }
      return;
    }
    // The answer was faster, and found nobody here.
    answered_.push_back(std::move(connection));
  }
  wake();
}

void ParkedConnections::on_answer(Connection::Id id) {
  {
    const std::lock_guard lock(mutex_);
    const auto at = parked_.find(id);
    if (at == parked_.end()) return;  // gone, or not yet here
    answered_.push_back(take(at));
  }
  wake();
}

ParkedConnections::Woken ParkedConnections::wait() {
  std::array<epoll_event, 64> events;
  const int count = epoll_wait(poll_.get(), events.data(), static_cast<int>(events.size()),
                               static_cast<int>(kCheckInterval.count()));
  Woken woken;
  const std::lock_guard lock(mutex_);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<size_t>(i)];
    if (event.data.u64 == kListener) {
      woken.listener = true;
    } else if (event.data.u64 == kWake) {
      uint64_t times = 0;
      (void)!::read(wake_.get(), &times, sizeof times);  // fails only when there is nothing to take
    } else {
      take_woken(event.data.u64, (event.events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0, woken);
    }
  }
  std::ranges::move(answered_, std::back_inserter(woken.connections));
  answered_.clear();
  take_overdue(woken);
  return woken;
}

void ParkedConnections::take_woken(Connection::Id id, bool hung_up, Woken& woken) {
  const auto at = parked_.find(id);
  if (at == parked_.end()) return;  // taken by another thread since
  Connection& connection = *at->second;
  if (connection.is_lingering()) {
    woken.lingering.push_back(take(at));
  } else if (hung_up && connection.interest() == Connection::Interest::kAnswer) {
    woken.left.push_back(take(at));
  } else {
    woken.connections.push_back(take(at));
  }
}

void ParkedConnections::take_overdue(Woken& woken) {
  const auto now = Connection::Clock::now();
  if (now < next_check_) return;
  next_check_ = now + kCheckInterval;
  for (auto at = parked_.begin(); at != parked_.end();) {
    const auto next = std::next(at);
    if (at->second->deadline() <= now) {
      // None is destroyed under the lock: what it holds on to may wait for someone who wants the
      // lock.
      std::unique_ptr<Connection> connection = take(at);
      (connection->ends_with_words() ? woken.connections : woken.overdue)
          .push_back(std::move(connection));
    }
    at = next;
  }
}

void ParkedConnections::wake() {
  const uint64_t once = 1;
  (void)!::write(wake_.get(), &once, sizeof once);  // fails only when it is awake already
}

void ParkedConnections::watch(int listener, bool on) {
  if (on) {
    invariant(add(poll_.get(), listener, kListener, EPOLLIN),
              "a listening socket can be waited for");
  } else {
    remove(poll_.get(), listener);
  }
}

std::vector<std::unique_ptr<Connection>> ParkedConnections::take_idle() {
  std::vector<std::unique_ptr<Connection>> taken;
  const std::lock_guard lock(mutex_);
  for (auto at = parked_.begin(); at != parked_.end();) {
    const auto next = std::next(at);
    if (at->second->is_between_requests()) taken.push_back(take(at));
    at = next;
  }
  return taken;
}

std::unique_ptr<Connection> ParkedConnections::take_oldest_if(const Condition& condition) {
  auto oldest = parked_.end();
  for (auto at = parked_.begin(); at != parked_.end(); ++at) {
    if (!condition(*at->second)) continue;
    if (oldest == parked_.end() || at->second->quiet_since() < oldest->second->quiet_since()) {
      oldest = at;
    }
  }
  return oldest == parked_.end() ? nullptr : take(oldest);
}

std::unique_ptr<Connection> ParkedConnections::take_oldest() {
  {
    const std::lock_guard lock(mutex_);
    auto idle = take_oldest_if([](const Connection& connection) {
      return connection.is_between_requests() || connection.is_lingering();
    });
    if (idle) return idle;
  }
  if (auto body = take_oldest_body()) return body;
  const std::lock_guard lock(mutex_);
  return take_oldest_if([](const Connection& connection) { return connection.is_sending(); });
}

std::unique_ptr<Connection> ParkedConnections::take_oldest_body() {
  const std::lock_guard lock(mutex_);
  return take_oldest_if([](const Connection& connection) {
    return connection.interest() == Connection::Interest::kRead && connection.ends_with_words();
  });
}

void ParkedConnections::end_by(Connection::Clock::time_point time) {
  const std::lock_guard lock(mutex_);
  end_ = time;
  for (const auto& [id, connection] : parked_) connection->end_by(time);
}

bool ParkedConnections::empty() const {
  const std::lock_guard lock(mutex_);
  return parked_.empty() && answered_.empty();
}

// Before the descriptor may be closed and its number given to another.
std::unique_ptr<Connection> ParkedConnections::take(Map::iterator at) {
  remove(poll_.get(), at->second->fd());
  std::unique_ptr<Connection> connection = std::move(at->second);
  parked_.erase(at);
  return connection;
}

}  // namespace blindfuse
