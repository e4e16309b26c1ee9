// One block of threads as fibers: who runs, who waits for whom, and what a warp does together.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/cuda/fiber.h"
#include "tests/cuda/races/run.h"

namespace blindfuse::races {

// What threads wait for: the block, or the lanes of a mask, which do something together.
enum class Together {
  kNothing,
  kBlockBarrier,
  kWarpBarrier,
  kShuffle,
  kReduceAdd,
  kMultiply,
  kWgmmaStart,
  kWgmmaWait,
  kPhase  // no others: until wake() is called
};

class Block {
 public:
  // The lanes of the mask have all come; arguments[lane] is what that lane gave.
  using Act = std::function<void(Together what, uint32_t warp, uint32_t mask,
                                 void* const (&arguments)[32])>;
  struct Calls {
    std::function<void()> run_thread;              // on the thread's stack
    std::function<void(uint32_t thread)> resumed;  // before a thread runs
    std::function<void(uint32_t thread)> ended;
    Act act;
    std::function<bool()> is_over;  // whether no more is asked
    // When all wait: whether something was done that others may wait for.
    std::function<bool()> go_on;
  };

  Block(uint32_t thread_count, Calls calls);
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  // Runs all threads to their end. What is wrong if they do not come there; else nothing.
  std::string run();

  // Of the running thread.
  uint32_t thread() const { return running_; }
  bool is_on_stack(const void* place) const;
  // Returns when the others have come and act() is done.
  void wait(Together what, uint32_t mask, const Site& site, void* argument);
  // Those that wait for a phase with this argument go on.
  void wake(const void* argument);

 private:
  struct Thread {
    emulator::Context context;
    const uint8_t* stack_top = nullptr;
    bool has_ended = false;
    Together what = Together::kNothing;
    uint32_t mask = 0;
    Site site;
    void* argument = nullptr;
  };

  static void enter();
  bool run_warp(uint32_t warp);
  bool release(uint32_t warp);
  bool release_block();
  std::string who_waits() const;

  Calls calls_;
  emulator::Context host_;
  std::vector<Thread> threads_;
  uint32_t running_ = 0;
  std::string trouble_;
};

}  // namespace blindfuse::races
