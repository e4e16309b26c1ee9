// Connections with nothing to do until something happens: the client sends, takes in, or leaves;
// the engine answers; time is up. They cost a descriptor, not a thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "host/server/connections/connection.h"
#include "src/system/file.h"

namespace blindfuse {

class ParkedConnections {
 public:
  // Throws EngineTrouble when the system has no descriptors left.
  ParkedConnections();

  // Any thread. Whatever arrives on a connection that lingers is thrown away. One that the system
  // has no room to watch is closed.
  void park(std::unique_ptr<Connection> connection);

  // Any thread: the answer that this connection waits for has come. It may not be here yet.
  void on_answer(Connection::Id id);

  struct Woken {
    bool listener = false;                                 // clients may be accepted
    std::vector<std::unique_ptr<Connection>> connections;  // for which something has happened
    std::vector<std::unique_ptr<Connection>> left;         // whose clients left before their answer
    std::vector<std::unique_ptr<Connection>> lingering;    // which have sent what nobody reads
    std::vector<std::unique_ptr<Connection>> overdue;      // to be closed without a word
  };
  // One thread: waits until something happens, or for a moment. Those whose time is up and who are
  // to be told are among `connections`.
  Woken wait();

  // Any thread: makes wait() return.
  void wake();

  // Whether wait() looks at this listening socket.
  void watch(int listener, bool on);

  // All connections on which no request has begun, or only a part of its head is there.
  std::vector<std::unique_ptr<Connection>> take_idle();
  // To make room: the one that has gone longest without a request of those on which none has begun,
  // or else of those whose body is arriving, or that are being sent to; nullptr when there is none.
  std::unique_ptr<Connection> take_oldest();
  // Of those whose body is arriving.
  std::unique_ptr<Connection> take_oldest_body();

  // From now on nobody is waited for beyond this time.
  void end_by(Connection::Clock::time_point time);

  bool empty() const;

 private:
  using Map = std::unordered_map<Connection::Id, std::unique_ptr<Connection>>;
  using Condition = std::function<bool(const Connection&)>;

  std::unique_ptr<Connection> take(Map::iterator at);
  std::unique_ptr<Connection> take_oldest_if(const Condition& condition);
  void take_woken(Connection::Id id, bool hung_up, Woken& woken);
  void take_overdue(Woken& woken);

  mutable std::mutex mutex_;
  Map parked_;
  std::vector<std::unique_ptr<Connection>> answered_;  // for the next wait()
  FileDescriptor poll_;
  FileDescriptor wake_;
  Connection::Clock::time_point next_check_;
  Connection::Clock::time_point end_ = Connection::Clock::time_point::max();
};

}  // namespace blindfuse
