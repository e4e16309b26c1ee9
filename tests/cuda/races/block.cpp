#include "tests/cuda/races/block.h"

#include <algorithm>
#include <string_view>

namespace blindfuse::races {
namespace {

Block* entered = nullptr;

bool is_same(const Site& a, const Site& b) {
  return a.line == b.line && std::string_view(a.file) == b.file;
}

}  // namespace

Block::Block(uint32_t thread_count, Calls calls)
    : calls_(std::move(calls)), threads_(thread_count) {}

void Block::enter() {
  Block& block = *entered;
  emulator::arrive_from(block.host_);
  Thread& self = block.threads_[block.running_];
  const uint8_t here = 0;
  self.stack_top = &here;
  block.calls_.run_thread();
  self.has_ended = true;
  block.calls_.ended(block.running_);
  emulator::switch_context(self.context, block.host_, true);
}

bool Block::is_on_stack(const void* place) const {
  constexpr ptrdiff_t kStackBytes = 128 << 10;
  const ptrdiff_t below = threads_[running_].stack_top - static_cast<const uint8_t*>(place);
  return below > -4096 && below < kStackBytes;
}

std::string Block::run() {
  entered = this;
  for (uint32_t t = 0; t < threads_.size(); ++t) {
    emulator::prepare_context(threads_[t].context, t, enter);
  }
  while (true) {
    bool moved = false;
    for (uint32_t warp = 0; warp < threads_.size() / 32; ++warp) {
      while (run_warp(warp)) {
        if (calls_.is_over()) return "";
        moved = true;
        if (!release(warp)) break;
      }
      if (!trouble_.empty()) return trouble_;
    }
    if (std::ranges::all_of(threads_, &Thread::has_ended)) return "";
    if (!release_block() && !moved && !calls_.go_on()) {
      return trouble_.empty() ? who_waits() : trouble_;
    }
  }
}

// Until all lanes wait or have ended; whether any ran.
bool Block::run_warp(uint32_t warp) {
  bool ran = false;
  for (uint32_t t = 32 * warp; t < 32 * warp + 32; ++t) {
    Thread& thread = threads_[t];
    if (thread.has_ended || thread.what != Together::kNothing) continue;
    running_ = t;
    calls_.resumed(t);
    emulator::switch_context(host_, thread.context);
    ran = true;
  }
  return ran;
}

void Block::wait(Together what, uint32_t mask, const Site& site, void* argument) {
  Thread& self = threads_[running_];
  self.what = what;
  self.mask = mask;
  self.site = site;
  self.argument = argument;
  emulator::switch_context(self.context, host_);
}

void Block::wake(const void* argument) {
  for (Thread& thread : threads_) {
    if (thread.what == Together::kPhase && thread.argument == argument) {
      thread.what = Together::kNothing;
    }
  }
}

// Lets those lanes go on of which all that they wait for are there.
bool Block::release(uint32_t warp) {
  bool released = false;
  for (uint32_t lane = 0; lane < 32; ++lane) {
    const Thread& first = threads_[32 * warp + lane];
    if (first.what == Together::kNothing || first.what == Together::kBlockBarrier ||
        first.what == Together::kPhase) {
      continue;
    }
    if ((first.mask >> lane & 1) == 0) {
      trouble_ = "a lane waits for others with a mask that it is not in";
      return false;
    }
    const auto has_come = [&](uint32_t other) {
      const Thread& thread = threads_[32 * warp + other];
      return (first.mask >> other & 1) == 0 ||
             (thread.what == first.what && thread.mask == first.mask &&
              is_same(thread.site, first.site));
    };
    bool all_have_come = true;
    for (uint32_t other = 0; other < 32; ++other) all_have_come &= has_come(other);
    if (!all_have_come) continue;
    const Together what = first.what;
    const uint32_t mask = first.mask;
    void* arguments[32] = {};
    for (uint32_t other = 0; other < 32; ++other) {
      if ((mask >> other & 1) == 0) continue;
      arguments[other] = threads_[32 * warp + other].argument;
      threads_[32 * warp + other].what = Together::kNothing;
    }
    calls_.act(what, warp, mask, arguments);
    released = true;
  }
  return released;
}

bool Block::release_block() {
  for (const Thread& thread : threads_) {
    if (thread.has_ended || thread.what != Together::kBlockBarrier) return false;
    if (!is_same(thread.site, threads_[0].site)) {
      trouble_ = "threads of the block wait at different barriers";
      return false;
    }
  }
  for (Thread& thread : threads_) thread.what = Together::kNothing;
  void* const no_arguments[32] = {};
  calls_.act(Together::kBlockBarrier, 0, 0, no_arguments);
  return true;
}

std::string Block::who_waits() const {
  for (uint32_t t = 0; t < threads_.size(); ++t) {
    if (threads_[t].has_ended) continue;
    const Site& site = threads_[t].site;
    return "thread " + std::to_string(t) + " waits in " + site.function + " (" + site.file + ':' +
           std::to_string(site.line) + ") for threads that do not come there";
  }
  return "";
}

}  // namespace blindfuse::races
