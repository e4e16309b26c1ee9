// All connections of a server, by what they wait for: whose turn it is to go when there are too
// many, or when bodies or responses take too much memory.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

namespace blindfuse::http {

// Any thread. Whoever is chosen to go is told outside the lock.
class Connections {
 public:
  enum class Stage {
    kQuiet,    // between requests, or after the last response
    kHead,     // some of a head has arrived
    kBody,     // a body is arriving
    kSending,  // a response is being sent
    kBusy,     // anything else; never chosen to go
  };
  // What a connection is told. Any thread.
  enum class Notice {
    kEnd,       // end now
    kStopping,  // the server stops: end as soon as nothing has begun
  };
  using Tell = std::function<void(Notice)>;

  enum class Room {
    kTaken,
    kSoon,  // once those that are to go have gone: try again in a moment
    kNone,  // the others' responses are still being made
    kGone,  // for a connection that was chosen to go
  };
  struct Reservation {
    Room room = Room::kTaken;
    size_t ended = 0;  // connections, to make room
  };

  // A connection's place in this list, which it leaves with its end.
  class Place {
   public:
    Place(Connections& all, Tell tell);
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    // memory: for kSending, what the response lends (Body::memory()), if anything.
    void enter(Stage stage, const void* memory = nullptr);
    // As many bytes has its body now. 0 when there is none. More than before break its silence.
    void set_body_bytes(uint64_t bytes);
    // Takes room for a response of this many bytes of memory, where all may have `all_max`. Those
    // that have stood still longest while theirs is sent are ended to make room.
    Reservation reserve_response(uint64_t bytes, uint64_t all_max);
    // The client has taken some more of its response.
    void note_progress();
    // The response has gone, or there will be none.
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

  // Those that have not been chosen to go.
  size_t count() const;
  uint64_t body_bytes() const;
  // Of all that have not gone.
  uint64_t response_bytes() const;

  // Ends the one that has been silent longest: since its last response, the first byte of its head,
  // or the last one of its body that has come. Where all are busy or sent to, the one that has
  // stood still longest while it is sent to. False when there is none of these.
  bool end_oldest();
  // Ends the one whose body has been arriving longest, and false when there is none.
  bool end_oldest_body();
  // Ends all that are sending a response from this memory; says how many.
  size_t end_senders_of(const void* memory);
  void tell_all(Notice notice) const;

  // Waits until there is none left, also of those that were chosen to go.
  void wait_until_empty();

 private:
  friend class Place;
  std::list<Place*>& in(Stage stage) { return stages_[static_cast<size_t>(stage)]; }
  Place* first(Stage stage) { return in(stage).empty() ? nullptr : in(stage).front(); }
  Place* longest_silent();
  static Tell take(Place* place);
  // Takes those out of the stage kSending that `is_meant` is true for, as long as `is_enough` is
  // not.
  template <typename IsMeant, typename IsEnough>
  std::vector<Tell> take_senders(const IsMeant& is_meant, const IsEnough& is_enough);

  mutable std::mutex mutex_;
  std::condition_variable emptied_;
  // In each, who has been there longest first; in kSending, who has stood still longest.
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
