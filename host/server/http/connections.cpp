#include "host/server/http/connections.h"

#include <utility>

namespace blindfuse::http {

Connections::Place::Place(Connections& all, Tell tell) : all_(all), tell_(std::move(tell)) {
  const std::lock_guard lock(all_.mutex_);
  auto& busy = all_.in(Stage::kBusy);
  at_ = busy.insert(busy.end(), this);
  ++all_.count_;
  ++all_.place_count_;
}

Connections::Place::~Place() {
  release_response();
  const std::lock_guard lock(all_.mutex_);
  leave();
  if (--all_.place_count_ == 0) all_.emptied_.notify_all();
}

void Connections::Place::enter(Stage stage, const void* memory) {
  const std::lock_guard lock(all_.mutex_);
  if (left_ || stage == stage_) return;
  auto& to = all_.in(stage);
  to.splice(to.end(), all_.in(stage_), at_);
  if (stage_ == Stage::kSending) all_.sending_response_bytes_ -= response_bytes_;
  if (stage == Stage::kSending) all_.sending_response_bytes_ += response_bytes_;
  stage_ = stage;
  memory_ = memory;
  silent_since_ = all_.moves_++;
}

void Connections::Place::set_body_bytes(uint64_t bytes) {
  const std::lock_guard lock(all_.mutex_);
  if (left_) return;
  if (bytes == body_bytes_) return;
  all_.body_bytes_ += bytes - body_bytes_;
  body_bytes_ = bytes;
  silent_since_ = all_.moves_++;
}

bool Connections::Place::reserve_response(uint64_t bytes, uint64_t all_max) {
  const std::lock_guard lock(all_.mutex_);
  if (left_ || all_.response_bytes_ + bytes > all_max) return false;
  response_bytes_ = bytes;
  all_.response_bytes_ += bytes;
  return true;
}

std::optional<size_t> Connections::Place::make_room(uint64_t bytes, uint64_t all_max) {
  std::vector<Tell> ended;
  {
    const std::lock_guard lock(all_.mutex_);
    if (left_) return 0;  // it ends itself
    const auto left = [&] { return all_.response_bytes_ - all_.leaving_response_bytes_; };
    // No connection is closed for a response that will have no room anyway.
    if (left() - all_.sending_response_bytes_ + bytes > all_max) return std::nullopt;
    ended = all_.take_senders([](const Place& place) { return place.response_bytes_ > 0; },
                              [&] { return left() + bytes <= all_max; });
  }
  for (const Tell& tell : ended) tell(Notice::kEnd);
  return ended.size();
}

void Connections::Place::note_progress() {
  const std::lock_guard lock(all_.mutex_);
  if (left_ || stage_ != Stage::kSending) return;
  auto& sending = all_.in(Stage::kSending);
  sending.splice(sending.end(), sending, at_);
}

void Connections::Place::release_response() {
  const std::lock_guard lock(all_.mutex_);
  const uint64_t bytes = std::exchange(response_bytes_, 0);
  all_.response_bytes_ -= bytes;
  if (left_) {
    all_.leaving_response_bytes_ -= bytes;
  } else if (stage_ == Stage::kSending) {
    all_.sending_response_bytes_ -= bytes;
  }
}

// The response of the connection holds memory until it has gone.
void Connections::Place::leave() {
  if (left_) return;
  left_ = true;
  all_.in(stage_).erase(at_);
  --all_.count_;
  all_.body_bytes_ -= body_bytes_;
  if (stage_ == Stage::kSending) all_.sending_response_bytes_ -= response_bytes_;
  all_.leaving_response_bytes_ += response_bytes_;
}

size_t Connections::count() const {
  const std::lock_guard lock(mutex_);
  return count_;
}

size_t Connections::open_count() const {
  const std::lock_guard lock(mutex_);
  return place_count_;
}

uint64_t Connections::body_bytes() const {
  const std::lock_guard lock(mutex_);
  return body_bytes_;
}

uint64_t Connections::response_bytes() const {
  const std::lock_guard lock(mutex_);
  return response_bytes_;
}

template <typename IsMeant, typename IsEnough>
std::vector<Connections::Tell> Connections::take_senders(const IsMeant& is_meant,
                                                         const IsEnough& is_enough) {
  std::vector<Tell> taken;
  auto& sending = in(Stage::kSending);
  for (auto at = sending.begin(); at != sending.end() && !is_enough();) {
    Place& place = **at++;
    if (!is_meant(place)) continue;
    taken.push_back(place.tell_);
    place.leave();
  }
  return taken;
}

Connections::Tell Connections::take(Place* place) {
  if (place == nullptr) return nullptr;
  Tell tell = place->tell_;
  place->leave();
  return tell;
}

Connections::Place* Connections::longest_silent() {
  Place* silent = nullptr;
  for (const Stage stage : {Stage::kQuiet, Stage::kHead, Stage::kBody}) {
    for (Place* place : in(stage)) {
      if (silent == nullptr || place->silent_since_ < silent->silent_since_) silent = place;
      // The others of this stage have come to it later; bodies grow meanwhile.
      if (stage != Stage::kBody) break;
    }
  }
  return silent;
}

bool Connections::end_oldest() {
  Tell tell;
  {
    const std::lock_guard lock(mutex_);
    Place* silent = longest_silent();
    tell = take(silent != nullptr ? silent : first(Stage::kSending));
  }
  if (tell) tell(Notice::kEnd);
  return tell != nullptr;
}

bool Connections::end_oldest_body() {
  Tell tell;
  {
    const std::lock_guard lock(mutex_);
    tell = take(first(Stage::kBody));
  }
  if (tell) tell(Notice::kEnd);
  return tell != nullptr;
}

size_t Connections::end_senders_of(const void* memory) {
  std::vector<Tell> ended;
  {
    const std::lock_guard lock(mutex_);
    ended = take_senders([&](const Place& place) { return place.memory_ == memory; },
                         [] { return false; });
  }
  for (const Tell& tell : ended) tell(Notice::kEnd);
  return ended.size();
}

void Connections::tell_all(Notice notice) const {
  std::vector<Tell> all;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& stage : stages_) {
      for (const Place* place : stage) all.push_back(place->tell_);
    }
  }
  for (const Tell& tell : all) tell(notice);
}

void Connections::wait_until_empty() {
  std::unique_lock lock(mutex_);
  emptied_.wait(lock, [this] { return place_count_ == 0; });
}

}  // namespace blindfuse::http
