#include "host/server/http/connections.h"

#include <utility>
#include <vector>

namespace blindfuse::http {

Connections::Place::Place(Connections& all, Tell tell) : all_(all), tell_(std::move(tell)) {
  const std::lock_guard lock(all_.mutex_);
  auto& busy = all_.stages_[static_cast<size_t>(Stage::kBusy)];
  at_ = busy.insert(busy.end(), this);
  ++all_.count_;
  ++all_.place_count_;
}

Connections::Place::~Place() {
  const std::lock_guard lock(all_.mutex_);
  leave();
  if (--all_.place_count_ == 0) all_.emptied_.notify_all();
}

void Connections::Place::enter(Stage stage) {
  const std::lock_guard lock(all_.mutex_);
  if (left_ || stage == stage_) return;
  auto& from = all_.stages_[static_cast<size_t>(stage_)];
  auto& to = all_.stages_[static_cast<size_t>(stage)];
  to.splice(to.end(), from, at_);
  stage_ = stage;
}

void Connections::Place::set_body_bytes(uint64_t bytes) {
  const std::lock_guard lock(all_.mutex_);
  if (left_) return;
  all_.body_bytes_ += bytes - body_bytes_;
  body_bytes_ = bytes;
}

void Connections::Place::leave() {
  if (left_) return;
  left_ = true;
  all_.stages_[static_cast<size_t>(stage_)].erase(at_);
  --all_.count_;
  all_.body_bytes_ -= body_bytes_;
}

size_t Connections::count() const {
  const std::lock_guard lock(mutex_);
  return count_;
}

uint64_t Connections::body_bytes() const {
  const std::lock_guard lock(mutex_);
  return body_bytes_;
}

Connections::Tell Connections::take_oldest(Stage stage) {
  auto& all = stages_[static_cast<size_t>(stage)];
  if (all.empty()) return nullptr;
  Place* oldest = all.front();
  oldest->leave();
  return oldest->tell_;
}

bool Connections::end_oldest() {
  Tell tell;
  {
    const std::lock_guard lock(mutex_);
    for (const Stage stage : {Stage::kQuiet, Stage::kHead, Stage::kBody, Stage::kSending}) {
      if (!tell) tell = take_oldest(stage);
    }
  }
  if (tell) tell(Notice::kEnd);
  return tell != nullptr;
}

bool Connections::end_oldest_body() {
  Tell tell;
  {
    const std::lock_guard lock(mutex_);
    tell = take_oldest(Stage::kBody);
  }
  if (tell) tell(Notice::kEnd);
  return tell != nullptr;
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
