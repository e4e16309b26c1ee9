// All connections of a server, by what they wait for: whose turn it is to go when there are too
// many, or too much memory in the bodies that arrive.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>

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

  // A connection's place in this list, which it leaves with its end.
  class Place {
   public:
    Place(Connections& all, Tell tell);
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    void enter(Stage stage);
    // As many bytes has its body now. 0 when there is none.
    void set_body_bytes(uint64_t bytes);

   private:
    friend class Connections;
    void leave();  // under the lock

    Connections& all_;
    const Tell tell_;
    Stage stage_ = Stage::kBusy;
    uint64_t body_bytes_ = 0;
    bool left_ = false;  // chosen to go: it counts no more
    std::list<Place*>::iterator at_;
  };

  // Those that have not been chosen to go.
  size_t count() const;
  uint64_t body_bytes() const;

  // Ends the one that has been quiet longest, or else the one whose head or body has been arriving
  // longest, or else the one that has been sent to longest. False when there is none of these.
  bool end_oldest();
  // Ends the one whose body has been arriving longest, and false when there is none.
  bool end_oldest_body();
  void tell_all(Notice notice) const;

  // Waits until there is none left, also of those that were chosen to go.
  void wait_until_empty();

 private:
  friend class Place;
  Tell take_oldest(Stage stage);

  mutable std::mutex mutex_;
  std::condition_variable emptied_;
  std::array<std::list<Place*>, 5> stages_;  // in each, who has been there longest first
  size_t count_ = 0;
  size_t place_count_ = 0;  // with those that were chosen to go
  uint64_t body_bytes_ = 0;
};

}  // namespace blindfuse::http
