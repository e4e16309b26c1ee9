// Computes responses from queries, both of them bit sequences, for a queue of slots.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace blindfuse {

// How the words of queries and responses are rounded to bit sequences (docs/PROTOCOL.md, section
// 7).
struct WireBits {
  uint32_t query = 32;
  uint32_t response = 32;
};

// Batches of neighbouring slots may overlap: the engine may receive one batch while it computes
// another.
class AnswerPipeline {
 public:
  virtual ~AnswerPipeline() = default;

  static constexpr size_t kDepthMax = 2;

  // The number of batches that may have begun and not been finished, 1 .. kDepthMax.
  virtual size_t depth() const = 0;
  // Puts a query, in the form in which it is sent, into a slot that no batch is using. Any thread.
  virtual void put(size_t slot, std::span<const uint8_t> query) = 0;
  // Copies a query to a slot that no batch is using. Called by the caller of begin().
  virtual void move(size_t from, size_t to) = 0;
  // Begins with the slots first .. first + count - 1. Throws ResourceError; then nothing has begun.
  virtual void begin(size_t first, size_t count) = 0;
  // Ends the oldest batch. Returns its responses, bit sequences of C words or those of a second
  // level (SecondLevelSpec), one after another. They stay until the next begin(). Throws
  // ResourceError; the batch has ended then, too. Throws DeviceLostError if a check of the products
  // fails, or any other check on the same device has failed.
  virtual std::span<const uint8_t> finish() = 0;
};

}  // namespace blindfuse
