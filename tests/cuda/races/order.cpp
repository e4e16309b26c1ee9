#include "tests/cuda/races/order.h"

#include <algorithm>

namespace blindfuse::races {

Order::Order(uint32_t thread_count) : clocks_(thread_count), fences_(thread_count) {
  for (uint32_t thread = 0; thread < thread_count; ++thread) {
    clocks_[thread] = {};
    clocks_[thread][thread % 32] = 1;
  }
}

Moment Order::now(uint32_t thread) {
  return {thread, phase_, clocks_[thread][thread % 32], ++tick_};
}

bool Order::is_before(const Moment& moment, uint32_t thread) const {
  if (moment.thread == thread || moment.phase < phase_) return true;
  if (!known_.empty() && !known_[thread].empty() && known_[thread][moment.thread] >= moment.clock) {
    return true;
  }
  return moment.thread / 32 == thread / 32 && clocks_[thread][moment.thread % 32] >= moment.clock;
}

void merge(Knowledge& into, const Knowledge& from) {
  if (into.size() < from.size()) into.resize(from.size());
  for (size_t i = 0; i < from.size(); ++i) into[i] = std::max(into[i], from[i]);
}

Knowledge Order::release(uint32_t thread) {
  Knowledge all(clocks_.size());
  if (!known_.empty()) merge(all, known_[thread]);
  const uint32_t first = thread / 32 * 32;
  for (uint32_t lane = 0; lane < 32 && first + lane < all.size(); ++lane) {
    all[first + lane] = std::max(all[first + lane], clocks_[thread][lane]);
  }
  ++clocks_[thread][thread % 32];
  return all;
}

void Order::acquire(uint32_t thread, const Knowledge& known) {
  if (known.empty()) return;
  if (known_.empty()) known_.resize(clocks_.size());
  merge(known_[thread], known);
}

void Order::block_barrier() { ++phase_; }

void Order::warp_barrier(uint32_t warp, uint32_t mask) {
  LaneClocks joined{};
  for (uint32_t lane = 0; lane < 32; ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    for (uint32_t i = 0; i < 32; ++i) {
      joined[i] = std::max(joined[i], clocks_[warp * 32 + lane][i]);
    }
  }
  for (uint32_t lane = 0; lane < 32; ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    clocks_[warp * 32 + lane] = joined;
    ++clocks_[warp * 32 + lane][lane];
  }
  if (known_.empty()) return;
  Knowledge all;
  for (uint32_t lane = 0; lane < 32; ++lane) {
    if ((mask >> lane & 1) != 0) merge(all, known_[warp * 32 + lane]);
  }
  for (uint32_t lane = 0; lane < 32; ++lane) {
    if ((mask >> lane & 1) != 0) known_[warp * 32 + lane] = all;
  }
}

void Order::fence_proxies(uint32_t thread) {
  fences_[thread].push_back(now(thread));
  if (fence_phases_.empty() || fence_phases_.back() != phase_) fence_phases_.push_back(phase_);
}

bool Order::is_fenced(const Moment& moment, uint32_t thread) const {
  const std::vector<Moment>& of_writer = fences_[moment.thread];
  const auto first = std::ranges::upper_bound(of_writer, moment.tick, {}, &Moment::tick);
  if (first != of_writer.end() && is_before(*first, thread)) return true;
  const std::vector<Moment>& of_reader = fences_[thread];
  if (!of_reader.empty() && of_reader.back().phase > moment.phase) return true;
  const auto phase = std::ranges::upper_bound(fence_phases_, moment.phase);
  return phase != fence_phases_.end() && *phase < phase_;
}

}  // namespace blindfuse::races
