// Copies of keys, wiped before their memory is given back.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace blindfuse {

// Moves only; what was moved from is empty.
class KeyCopies {
 public:
  // Room for `count` keys: to grow would leave copies behind.
  explicit KeyCopies(size_t count) { texts_.reserve(count); }
  ~KeyCopies();
  KeyCopies(KeyCopies&&) noexcept = default;
  KeyCopies& operator=(KeyCopies&&) = delete;
  void add(std::string_view key);
  void append(std::span<const std::string> keys);
  std::span<const std::string> span() const { return texts_; }

 private:
  std::vector<std::string> texts_;
};

}  // namespace blindfuse
