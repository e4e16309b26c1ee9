// All connections of a server, by the event for which they wait. The list chooses the connections
// to end if there are too many, or if bodies or responses take too much memory.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace blindfuse::http {

// Any thread. A connection that is chosen to end is told so outside the lock.
class Connections {
 public:
  enum class Stage {
    kQuiet,    // between requests, or after the last response
    kHead,     // some of a head has arrived
    kBody,     // a body is arriving
    kSending,  // a response is being sent
    kBusy,     // anything else; never chosen to go
  };
  // The signals to a connection. Any thread.
  enum class Notice {
    kEnd,       // end now
    kStopping,  // the server stops: end as soon as nothing has begun
  };
  using Tell = std::function<void(Notice)>;

  // A connection's place in this list. The connection leaves it at its end.
  class Place {
   public:
    Place(Connections& all, Tell tell);
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    // memory: for kSending, the memory that the response lends (Body::memory()), if any.
    void enter(Stage stage, const void* memory = nullptr);
    // The body has this many bytes now; 0 if there is none. A larger number than before counts as
    // activity.
    void set_body_bytes(uint64_t bytes);
    // Takes room for a response of this many bytes of memory. All responses may have `all_max`.
    // Returns false if there is no room now.
    bool reserve_response(uint64_t bytes, uint64_t all_max);
    // Makes that room: ends the connections whose responses have stood still longest while they are
    // sent, and returns their number. The room is there once they have ended. Returns nothing if
    // the responses that are still being made take it; then no connection is ended.
    std::optional<size_t> make_room(uint64_t bytes, uint64_t all_max);
    // The client has taken some more of its response.
    void note_progress();
    // The response has been sent, or there will be none.
    void release_response();

   private:
    friend class Connections;
    void leave();  // under the lock

    Connections& all_;
    const Tell tell_;
    Stage stage_ = Stage::kBusy;
    uint64_t body_bytes_ = 0;
    uint64_t response_bytes_ = 0;
    const void* memory_ = nullptr;  // in the stage kSending
    uint64_t silent_since_ = 0;     // of moves_
    bool left_ = false;             // chosen to go: it counts no more
    std::list<Place*>::iterator at_;
  };

  // The connections that have not been chosen to end.
  size_t count() const;
  // Counts connections that have been chosen to end, and have not ended yet, too.
  size_t open_count() const;
  uint64_t body_bytes() const;
  // The bytes of all connections that have not ended.
  uint64_t response_bytes() const;

  // Ends the connection that has been silent longest: since its last response, the first byte of
  // its head, or the last byte of its body that has come. If all are busy or sent to, ends the one
  // whose response has stood still longest. Returns false if there is no such connection.
  bool end_oldest();
  // Ends the connection whose body has been arriving longest. Returns false if there is none.
  bool end_oldest_body();
  // Ends all connections that are sending a response from this memory, and returns their number.
  size_t end_senders_of(const void* memory);
  void tell_all(Notice notice) const;

  // Waits until there are no connections left, including those that were chosen to end.
  void wait_until_empty();

 private:
  friend class Place;
  std::list<Place*>& in(Stage stage) { return stages_[static_cast<size_t>(stage)]; }
  Place* first(Stage stage) { return in(stage).empty() ? nullptr : in(stage).front(); }
  Place* longest_silent();
  static Tell take(Place* place);
  // Takes connections for which `is_meant` is true out of the stage kSending, until `is_enough` is
  // true.
  template <typename IsMeant, typename IsEnough>
  std::vector<Tell> take_senders(const IsMeant& is_meant, const IsEnough& is_enough);

  mutable std::mutex mutex_;
  std::condition_variable emptied_;
  // Each stage has its connections in the order in which they entered it. In kSending, the one that
  // has stood still longest comes first.
  std::array<std::list<Place*>, 5> stages_;
  uint64_t moves_ = 0;  // counts what places do, to tell what came first
  size_t count_ = 0;
  size_t place_count_ = 0;  // with those that were chosen to go
  uint64_t body_bytes_ = 0;
  uint64_t response_bytes_ = 0;
  uint64_t sending_response_bytes_ = 0;  // of these, of those in the stage kSending
  uint64_t leaving_response_bytes_ = 0;  // of these, of those that were chosen to go
};

}  // namespace blindfuse::http
