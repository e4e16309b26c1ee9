// Secrets: memory that is wiped before it is freed, copies of keys in it, and ternary numbers
// without bias.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "src/base/errors.h"
#include "src/system/random.h"

namespace blindfuse {

// Overwrites memory in a way that the compiler does not leave out.
void wipe_memory(void* memory, size_t bytes);

// An array that is zero at first, and is wiped before its memory is freed. Moves only. A moved-from
// array is empty.
//
// A forked child has a copy of it, and PreparedQuery refuses to use the copy. The kernel could wipe
// the array in the child (MADV_WIPEONFORK). But a query that is zero in place of its mask would
// reveal its rows to the server, and a signal handler may fork during an encryption.
template <class T, class Allocator = std::allocator<T>>
class SecretBuffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  SecretBuffer() = default;
  explicit SecretBuffer(size_t size) : data_(Allocator().allocate(size)), size_(size) {
    std::uninitialized_value_construct_n(data_, size_);
  }
  ~SecretBuffer() { clear(); }
  SecretBuffer(const SecretBuffer&) = delete;
  SecretBuffer& operator=(const SecretBuffer&) = delete;
  SecretBuffer(SecretBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  SecretBuffer& operator=(SecretBuffer&& other) noexcept {
    if (this != &other) {
      clear();
      data_ = std::exchange(other.data_, nullptr);
      size_ = std::exchange(other.size_, 0);
    }
    return *this;
  }

  // Wipes and frees.
  void clear() noexcept {
    if (data_ == nullptr) return;
    wipe_memory(data_, size_ * sizeof(T));
    Allocator().deallocate(std::exchange(data_, nullptr), std::exchange(size_, 0));
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::span<T> span() { return {data_, size_}; }
  std::span<const T> span() const { return {data_, size_}; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
};

// Fills `words` with independent numbers, each -1, 0 or 1 (modulo 2^32) with probability exactly
// 1/3 when `random` is uniform.
//
// A byte below 243 = 3^5 holds five of them, its digits in base 3 less one, the lowest digit first.
// Other bytes are dropped, which reveals nothing about those that are kept. The bytes come in
// blocks of at most 64 KiB directly from `random`. A million numbers take 0.2 MB, and the operating
// system gives about 0.3 GB/s, so the client needs no generator of its own.
void sample_ternary(const RandomSource& random, std::span<uint32_t> words);

// Fills `words` with independent numbers (modulo 2^32), each uniform on -max..max; max is 1 or 4
// (LweParams::error_max). With 4, a number is t + 3 u of two ternary numbers t and u. They come
// from `random` in this order, all t first.
void sample_errors(const RandomSource& random, uint32_t max, std::span<uint32_t> words);

// Copies of keys, which are wiped before their memory is freed. Moves only. A moved-from object is
// empty.
template <class Allocator>
class BasicKeyCopies {
 public:
  using Text = std::basic_string<char, std::char_traits<char>, Allocator>;

  // Room for `count` keys: growing would leave copies in freed memory.
  explicit BasicKeyCopies(size_t count) { texts_.reserve(count); }
  ~BasicKeyCopies() {
    for (Text& text : texts_) wipe_memory(text.data(), text.size());
  }
  BasicKeyCopies(BasicKeyCopies&&) noexcept = default;
  BasicKeyCopies& operator=(BasicKeyCopies&&) = delete;

  void add(std::string_view key) {
    invariant(texts_.size() < texts_.capacity(), "there is room for the key");
    texts_.emplace_back(key);
  }
  std::span<const Text> span() const { return texts_; }

 private:
  using TextAllocator = typename std::allocator_traits<Allocator>::template rebind_alloc<Text>;

  std::vector<Text, TextAllocator> texts_;
};

using KeyCopies = BasicKeyCopies<std::allocator<char>>;

}  // namespace blindfuse
