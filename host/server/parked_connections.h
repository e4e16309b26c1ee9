// Connections with nothing to do until the client sends something. They cost a descriptor, not a
// thread.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "host/server/connection.h"
#include "src/system/file.h"

namespace blindfuse {

class ParkedConnections {
 public:
  // Throws EngineTrouble when the system has no descriptors left.
  ParkedConnections();

  // Any thread. Closes the connection when nothing arrives until its deadline, or when the system
  // has no room to watch it; whatever arrives on one that lingers is thrown away.
  void park(std::unique_ptr<Connection> connection);

  struct Woken {
    bool listener = false;                                 // clients may be accepted
    std::vector<std::unique_ptr<Connection>> connections;  // on which something has arrived
  };
  // One thread: waits until something happens, or for a moment.
  Woken wait();

  // Any thread: makes wait() return.
  void wake();

  // Whether wait() looks at this listening socket.
  void watch(int listener, bool on);

  // All connections that do not linger, or just the one that has been here longest, if there is
  // one.
  std::vector<std::unique_ptr<Connection>> take_waiting();
  std::unique_ptr<Connection> take_oldest();

  bool empty() const;

 private:
  using Map = std::unordered_map<int, std::unique_ptr<Connection>>;

  std::unique_ptr<Connection> take(Map::iterator at);
  void take_woken(int fd, Woken& woken);
  void close_overdue();

  mutable std::mutex mutex_;
  Map parked_;
  FileDescriptor poll_;
  FileDescriptor wake_;
  int listener_ = -1;
  Connection::Clock::time_point next_check_;
};

}  // namespace blindfuse
