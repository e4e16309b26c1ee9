// A copy of some bytes, of which a part cannot be read: a read there ends the process.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>

namespace blindfuse {

class TrappedBytes {
 public:
  static TrappedBytes from(size_t first, std::span<const uint8_t> bytes) {
    return TrappedBytes(bytes, first, false);
  }
  static TrappedBytes before(size_t end, std::span<const uint8_t> bytes) {
    return TrappedBytes(bytes, end, true);
  }
  ~TrappedBytes() { munmap(memory_, mapped_); }
  TrappedBytes(const TrappedBytes&) = delete;
  TrappedBytes& operator=(const TrappedBytes&) = delete;

  std::span<const uint8_t> span() const { return {memory_ + begin_, size_}; }

 private:
  static constexpr size_t kPage = 65'536;  // at least, of every processor
  static size_t pages(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

  // The border is where a page begins.
  TrappedBytes(std::span<const uint8_t> bytes, size_t border, bool is_before)
      : size_(bytes.size()),
        mapped_(pages(border) + pages(bytes.size() - border)),
        begin_(pages(border) - border) {
    void* const made =
        mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED) std::abort();
    memory_ = static_cast<uint8_t*>(made);
    std::copy(bytes.begin(), bytes.end(), memory_ + begin_);
    uint8_t* const trap = is_before ? memory_ : memory_ + pages(border);
    const size_t trapped = is_before ? pages(border) : mapped_ - pages(border);
    if (mprotect(trap, trapped, PROT_NONE) != 0) std::abort();
  }

  const size_t size_;
  const size_t mapped_;
  const size_t begin_;
  uint8_t* memory_ = nullptr;
};

}  // namespace blindfuse
