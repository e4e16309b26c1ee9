#include "src/system/process_token.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <new>

#include "src/base/errors.h"
#include "src/system/random.h"

namespace blindfuse {
namespace {

static_assert(std::atomic<uint64_t>::is_always_lock_free, "a handler in a child takes no locks");

std::atomic<uint64_t> cleared_by_handler = 0;

size_t page_bytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

bool is_wiped(void* page, ForkSentinel::Advise advise) {
  // Some versions of QEMU's user mode accept all advice, and follow none.
  constexpr int kNoSuchAdvice = -1;
  if (advise(page, page_bytes(), kNoSuchAdvice) == 0) return false;
  return advise(page, page_bytes(), MADV_WIPEONFORK) == 0;
}

// A page that the kernel wipes in children, or nullptr.
void* wiped_page(ForkSentinel::Advise advise) {
  void* page =
      mmap(nullptr, page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return nullptr;
  if (is_wiped(page, advise)) return page;
  munmap(page, page_bytes());
  return nullptr;
}

// It is made at the first use, and stays to the end: an object that is destroyed last may still
// ask. A static local variable would have a lock, which a child may find taken by a thread that it
// does not have.
std::atomic<ForkSentinel*> the_sentinel = nullptr;

ForkSentinel& sentinel() {
  ForkSentinel* made = the_sentinel;
  if (made != nullptr) return *made;
  auto fresh = std::make_unique<ForkSentinel>(madvise);
  // If another thread was faster, its own counts.
  if (the_sentinel.compare_exchange_strong(made, fresh.get())) made = fresh.release();
  return *made;
}

uint64_t random_word() {
  uint64_t word = 0;
  fill_from_system({reinterpret_cast<uint8_t*>(&word), sizeof(word)});
  return word;
}

}  // namespace

ForkSentinel::ForkSentinel(Advise advise) : page_(wiped_page(advise)) {
  if (page_ != nullptr) {
    word_ = new (page_) std::atomic<uint64_t>(0);
    return;
  }
  word_ = &cleared_by_handler;
  if (pthread_atfork(nullptr, nullptr, [] { cleared_by_handler = 0; }) != 0) {
    throw ResourceError("there is no memory for a fork handler (pthread_atfork)");
  }
}

ForkSentinel::~ForkSentinel() {
  if (page_ != nullptr) munmap(page_, page_bytes());
}

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
