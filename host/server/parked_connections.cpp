#include "host/server/parked_connections.h"

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

bool add(int poll, int fd) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP;
  event.data.fd = fd;
  return epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event) == 0;
}

void remove(int poll, int fd) { epoll_ctl(poll, EPOLL_CTL_DEL, fd, nullptr); }

}  // namespace

ParkedConnections::ParkedConnections()
    : poll_(epoll_create1(EPOLL_CLOEXEC)), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!poll_.is_open() || !wake_.is_open() || !add(poll_.get(), wake_.get())) {
    throw EngineTrouble(std::string("cannot wait for connections: ") + std::strerror(errno));
  }
}

void ParkedConnections::park(std::unique_ptr<Connection> connection) {
  connection->start_waiting(Connection::Clock::now());
  const int fd = connection->fd();
  const std::lock_guard lock(mutex_);
  if (add(poll_.get(), fd)) parked_[fd] = std::move(connection);
}

ParkedConnections::Woken ParkedConnections::wait() {
  std::array<epoll_event, 64> events;
  const int count = epoll_wait(poll_.get(), events.data(), static_cast<int>(events.size()),
                               static_cast<int>(kCheckInterval.count()));
  Woken woken;
  const std::lock_guard lock(mutex_);
  for (int i = 0; i < count; ++i) {
    const int fd = events[static_cast<size_t>(i)].data.fd;
    if (fd == listener_) {
      woken.listener = true;
    } else if (fd == wake_.get()) {
      uint64_t times = 0;
      (void)!::read(fd, &times, sizeof times);  // fails only when there is nothing to take
    } else {
      take_woken(fd, woken);
    }
  }
  close_overdue();
  return woken;
}

void ParkedConnections::take_woken(int fd, Woken& woken) {
  const auto at = parked_.find(fd);
  if (at == parked_.end()) return;  // taken by another thread since
  if (!at->second->is_lingering()) {
    woken.connections.push_back(take(at));
  } else if (!at->second->discard()) {
    take(at);
  }
}

void ParkedConnections::close_overdue() {
  const auto now = Connection::Clock::now();
  if (now < next_check_) return;
  next_check_ = now + kCheckInterval;
  for (auto at = parked_.begin(); at != parked_.end();) {
    const auto next = std::next(at);
    if (at->second->deadline() <= now) take(at);
    at = next;
  }
}

void ParkedConnections::wake() {
  const uint64_t once = 1;
  (void)!::write(wake_.get(), &once, sizeof once);  // fails only when it is awake already
}

void ParkedConnections::watch(int listener, bool on) {
  if (on) {
    invariant(add(poll_.get(), listener), "a listening socket can be waited for");
  } else {
    remove(poll_.get(), listener);
  }
  listener_ = on ? listener : -1;
}

std::vector<std::unique_ptr<Connection>> ParkedConnections::take_waiting() {
  std::vector<std::unique_ptr<Connection>> taken;
  const std::lock_guard lock(mutex_);
  for (auto at = parked_.begin(); at != parked_.end();) {
    const auto next = std::next(at);
    if (!at->second->is_lingering()) taken.push_back(take(at));
    at = next;
  }
  return taken;
}

std::unique_ptr<Connection> ParkedConnections::take_oldest() {
  const std::lock_guard lock(mutex_);
  const auto oldest = std::ranges::min_element(
      parked_, {}, [](const auto& entry) { return entry.second->deadline(); });
  return oldest == parked_.end() ? nullptr : take(oldest);
}

bool ParkedConnections::empty() const {
  const std::lock_guard lock(mutex_);
  return parked_.empty();
}

// Before the descriptor may be closed and its number given to another.
std::unique_ptr<Connection> ParkedConnections::take(Map::iterator at) {
  remove(poll_.get(), at->first);
  std::unique_ptr<Connection> connection = std::move(at->second);
  parked_.erase(at);
  return connection;
}

}  // namespace blindfuse
