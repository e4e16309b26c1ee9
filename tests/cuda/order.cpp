#include "tests/cuda/order.h"

#include <algorithm>
#include <utility>

namespace blindfuse::emulator {

Order::Order(uint32_t thread_count, uint32_t agent_count)
    : thread_count_(thread_count),
      clocks_(thread_count / 32 + agent_count, 1),
      joined_(clocks_.size()),
      known_(thread_count + agent_count),
      fences_(thread_count) {}

Moment Order::now(uint32_t actor) { return {actor, phase_, clocks_[warp_of(actor)], ++tick_}; }

bool Order::is_before(const Moment& moment, uint32_t actor) const {
  if (moment.actor == actor || moment.phase < phase_) return true;
  const uint32_t warp = warp_of(moment.actor);
  if (warp == warp_of(actor) && moment.clock <= joined_[warp]) return true;
  const Knowledge& known = known_[actor];
  return !known.empty() && known[moment.actor] >= moment.clock;
}

void merge(Knowledge& into, const Knowledge& from) {
  if (into.size() < from.size()) into.resize(from.size());
  for (size_t i = 0; i < from.size(); ++i) into[i] = std::max(into[i], from[i]);
}

void Order::warp_barrier(uint32_t warp) {
  joined_[warp] = clocks_[warp]++;
  Knowledge all;
  for (uint32_t lane = 0; lane < 32; ++lane) merge(all, known_[warp * 32 + lane]);
  for (uint32_t lane = 0; lane < 32 && !all.empty(); ++lane) known_[warp * 32 + lane] = all;
}

Knowledge Order::release(uint32_t actor) {
  Knowledge all = known_[actor];
  all.resize(known_.size());
  const uint32_t warp = warp_of(actor);
  for (uint32_t lane = 0; lane < 32 && actor < thread_count_; ++lane) {
    all[warp * 32 + lane] = std::max(all[warp * 32 + lane], joined_[warp]);
  }
  all[actor] = clocks_[warp]++;
  return all;
}

void Order::acquire(uint32_t actor, const Knowledge& known) { merge(known_[actor], known); }

void Order::switch_to_common(uint32_t warp) {
  Knowledge& first = known_[warp * 32];
  if (of_first_) {
    first = *std::exchange(of_first_, std::nullopt);
    return;
  }
  of_first_ = first;
  for (uint32_t lane = 1; lane < 32; ++lane) {
    const Knowledge& other = known_[warp * 32 + lane];
    for (size_t i = 0; i < first.size(); ++i) {
      first[i] = i < other.size() ? std::min(first[i], other[i]) : 0;
    }
  }
}

void Order::fence_proxies(uint32_t thread) {
  fences_[thread].push_back(now(thread));
  if (fence_phases_.empty() || fence_phases_.back() != phase_) fence_phases_.push_back(phase_);
}

bool Order::is_fenced(const Moment& moment, uint32_t thread) const {
  const std::vector<Moment>& of_writer = fences_[moment.actor];
  const auto first = std::ranges::upper_bound(of_writer, moment.tick, {}, &Moment::tick);
  if (first != of_writer.end() && is_before(*first, thread)) return true;
  const std::vector<Moment>& of_reader = fences_[thread];
  if (!of_reader.empty() && of_reader.back().phase > moment.phase) return true;
  const auto phase = std::ranges::upper_bound(fence_phases_, moment.phase);
  return phase != fence_phases_.end() && *phase < phase_;
}

}  // namespace blindfuse::emulator
