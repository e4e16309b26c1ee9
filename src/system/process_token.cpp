#include "src/system/process_token.h"

#include <sys/mman.h>

#include <atomic>
#include <memory>

#include "src/system/fork_sentinel.h"
#include "src/system/random.h"

namespace blindfuse {
namespace {

// Made at the first use, and there to the end: what is destroyed last may still ask. A static local
// variable would have a lock, which a child may find taken by a thread that it does not have.
std::atomic<ForkSentinel*> the_sentinel = nullptr;

ForkSentinel& sentinel() {
  ForkSentinel* made = the_sentinel;
  if (made != nullptr) return *made;
  auto fresh = std::make_unique<ForkSentinel>(madvise);
  // When another thread was faster, its own counts.
  if (the_sentinel.compare_exchange_strong(made, fresh.get())) made = fresh.release();
  return *made;
}

uint64_t random_word() {
  uint64_t word = 0;
  fill_from_system({reinterpret_cast<uint8_t*>(&word), sizeof(word)});
  return word;
}

}  // namespace

ProcessToken ProcessToken::current() {
  std::atomic<uint64_t>& word = sentinel().word();
  uint64_t value = word;
  while (value == 0) {
    const uint64_t fresh = random_word();
    if (word.compare_exchange_strong(value, fresh)) value = fresh;
  }
  return ProcessToken(value);
}

bool ProcessToken::is_current() const noexcept { return the_sentinel.load()->word() == value_; }

}  // namespace blindfuse
