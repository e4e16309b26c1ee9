#include "host/server/serving/serving_epoch.h"

#include <algorithm>
#include <iterator>

namespace blindfuse {

std::shared_ptr<const ServingEpoch> ServedEpochs::current() const {
  const std::lock_guard lock(mutex_);
  return current_;
}

std::vector<std::shared_ptr<const ServingEpoch>> ServedEpochs::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<const ServingEpoch>> epochs = {current_};
  for (const Graced& graced : graced_) epochs.push_back(graced.epoch);
  return epochs;
}

std::vector<EpochInMemory> ServedEpochs::in_memory() const {
  const auto held = [](const std::shared_ptr<const ServingEpoch>& epoch, EpochState state,
                       Clock::time_point grace_ends = {}) {
    return EpochInMemory{epoch->database().epoch, state, epoch, epoch->database().downloads,
                         grace_ends};
  };
  const std::lock_guard lock(mutex_);
  std::vector<EpochInMemory> epochs;
  for (const Downloaded& downloaded : downloaded_) {
    if (auto downloads = downloaded.downloads.lock()) {
      epochs.push_back({downloaded.id, EpochState::kDownloads, nullptr, std::move(downloads)});
    }
  }
  for (const auto& epoch : leaving_) epochs.push_back(held(epoch, EpochState::kLeaving));
  for (const Graced& graced : graced_) {
    epochs.push_back(held(graced.epoch, EpochState::kGrace, graced.ends));
  }
  epochs.push_back(held(current_, EpochState::kCurrent));
  std::ranges::reverse(epochs);
  return epochs;
}

ServedEpochs::Found ServedEpochs::find(std::string_view id) const {
  const std::lock_guard lock(mutex_);
  const LoadedDatabase& database = current_->database();
  if (id == database.epoch) return {current_, false, database.epoch};
  for (const Graced& graced : graced_) {
    if (id == graced.epoch->database().epoch) return {graced.epoch, false, database.epoch};
  }
  const auto has = [&](const auto& ids) { return std::ranges::find(ids, id) != ids.end(); };
  return {nullptr, has(database.retired) || has(retired_), database.epoch};
}

void ServedEpochs::replace(std::shared_ptr<const ServingEpoch> next, Clock::time_point grace_ends) {
  // The directory has a list of its own. This one is for epochs that were there before another
  // directory took its place.
  constexpr size_t kRetiredMax = 1000;
  const std::lock_guard lock(mutex_);
  // An epoch may come back: its id then stands for the newer copy of the same data.
  for (Graced& graced : graced_) {
    if (graced.epoch->database().epoch == next->database().epoch) graced.ends = {};
  }
  std::swap(current_, next);
  std::erase(retired_, current_->database().epoch);
  retired_.push_back(next->database().epoch);
  if (retired_.size() > kRetiredMax) retired_.erase(retired_.begin());
  graced_.push_back({std::move(next), grace_ends});
}

void ServedEpochs::end_oldest_grace() {
  const std::lock_guard lock(mutex_);
  if (!graced_.empty()) graced_.front().ends = {};
}

size_t ServedEpochs::retire(Clock::time_point now) {
  std::vector<std::shared_ptr<const ServingEpoch>> freed;  // after the lock is
  const std::lock_guard lock(mutex_);
  for (Graced& graced : graced_) {
    if (graced.ends <= now) leaving_.push_back(std::move(graced.epoch));
  }
  std::erase_if(graced_, [](const Graced& graced) { return graced.epoch == nullptr; });
  size_t gone = std::erase_if(
      downloaded_, [](const Downloaded& downloaded) { return downloaded.downloads.expired(); });
  // No thread can take a reference to one of these any more, so that a count of one stays one.
  for (auto& epoch : leaving_) {
    if (epoch.use_count() > 1) continue;
    const LoadedDatabase& database = epoch->database();
    if (database.downloads.use_count() > 1) {
      downloaded_.push_back({database.epoch, database.downloads});
    } else {
      ++gone;
    }
    freed.push_back(std::move(epoch));
  }
  std::erase(leaving_, nullptr);
  return gone;
}

}  // namespace blindfuse
