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
  return moment.thread / 32 == thread / 32 && clocks_[thread][moment.thread % 32] >= moment.clock;
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
