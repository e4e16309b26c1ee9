// Copies of keys, which are wiped before their memory is freed.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client/secret.h"
#include "src/base/errors.h"

namespace blindfuse {

// Moves only. A moved-from object is empty.
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
  void append(std::span<const Text> keys) {
    for (const Text& key : keys) add(key);
  }
  std::span<const Text> span() const { return texts_; }

 private:
  using TextAllocator = typename std::allocator_traits<Allocator>::template rebind_alloc<Text>;

  std::vector<Text, TextAllocator> texts_;
};

using KeyCopies = BasicKeyCopies<std::allocator<char>>;

}  // namespace blindfuse
