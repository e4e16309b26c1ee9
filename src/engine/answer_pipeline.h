// From queries to responses, both bit sequences, for a queue of slots.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include "src/engine/canary.h"

namespace blindfuse {

// How the words of queries and responses are rounded to bit sequences (docs/PROTOCOL.md, section 7).
struct WireBits {
  uint32_t query = 32;
  uint32_t response = 32;
};

// Batches of neighbouring slots may overlap: one is computed while the next is brought to where the
// engine computes.
class AnswerPipeline {
 public:
  virtual ~AnswerPipeline() = default;

  static constexpr size_t kDepthMax = 2;

  // How many batches may have begun and not been finished, 1 .. kDepthMax.
  virtual size_t depth() const = 0;
  // Puts a query as it is sent into a slot that no batch is using. Any thread.
  virtual void put(size_t slot, std::span<const uint8_t> query) = 0;
  // Copies a query to a slot that no batch is using. The caller of begin().
  virtual void move(size_t from, size_t to) = 0;
  // Begins with the slots first .. first + count - 1. Throws ResourceError; nothing has begun then.
  virtual void begin(size_t first, size_t count) = 0;
  // Ends the oldest batch: its responses, bit sequences of C words, one after another, which stay until
  // the next begin(). Throws ResourceError; the batch has ended then, too.
  virtual std::span<const uint8_t> finish() = 0;

  // From now on the canary is computed with each batch that has room for it, and by each kernel and
  // tile at least once in an interval in which they are used. The canary outlives the pipeline.
  // Called before the first begin(). Where its response is not what the host computed, finish() or
  // begin() throws ResourceError, or DeviceLostError when nothing else could take the place of what
  // is wrong, and the kernel record has it. What is in quarantine and has no replacement answers
  // nothing more: finish(), begin() and check() of all pipelines that use it throw DeviceLostError.
  // Pipelines of engines without a kernel record compute no canary.
  virtual void set_canary(const Canary& /*canary*/, std::chrono::milliseconds /*interval*/) {}
  // Computes the canary by each kernel for which an interval has passed since the last time, and by
  // what takes the place of one that is wrong. While no batch has begun; the caller of begin().
  // Throws as finish() does; and before the first batch, until it has gone well once, ResourceError
  // where all products are right and what is made of them is not. That is counted in the kernel
  // record, and nothing comes into quarantine: other pipelines may be right.
  virtual void check() {}
};

}  // namespace blindfuse
