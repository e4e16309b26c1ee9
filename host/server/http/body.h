// The bytes that a response sends directly from memory, without a copy.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace blindfuse::http {

// Any thread.
class Body {
 public:
  virtual ~Body() = default;

  virtual uint64_t size() const = 0;
  // The contiguous bytes from `offset` on, which is below size(): at least one.
  virtual std::span<const uint8_t> from(uint64_t offset) const = 0;
  // The memory that a response holds with this body. Server::end_responses_of() ends the responses
  // that hold it.
  virtual const void* memory() const = 0;
};

// A range of a body. Without a body, it is empty.
struct BodyRange {
  std::shared_ptr<const Body> body = {};
  uint64_t first = 0;
  uint64_t size = 0;

  const void* memory() const { return body ? body->memory() : nullptr; }
  // The same as Body::from(), for the range alone.
  std::span<const uint8_t> from(uint64_t offset) const {
    const auto bytes = body->from(first + offset);
    return bytes.first(std::min<uint64_t>(bytes.size(), size - offset));
  }
};

// Contiguous bytes, and the owner that keeps them in memory.
class MemoryBody final : public Body {
 public:
  MemoryBody(std::span<const uint8_t> bytes, std::shared_ptr<const void> owner)
      : bytes_(bytes), owner_(std::move(owner)) {}

  uint64_t size() const override { return bytes_.size(); }
  std::span<const uint8_t> from(uint64_t offset) const override { return bytes_.subspan(offset); }
  const void* memory() const override { return owner_.get(); }

 private:
  const std::span<const uint8_t> bytes_;
  const std::shared_ptr<const void> owner_;
};

}  // namespace blindfuse::http
