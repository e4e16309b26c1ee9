// Computes responses from queries, both of them bit sequences, for a queue of slots.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include "src/engine/canary.h"

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
  // ResourceError; the batch has ended then, too.
  virtual std::span<const uint8_t> finish() = 0;

  // From now on the canary is computed with each batch that has room for it, and by each kernel and
  // tile at least once in an interval in which they are used. Called before the first begin(). The
  // canary outlives the pipeline. If its response is not the one that the host computed, the kernel
  // record notes it, and finish() or begin() throws ResourceError, or DeviceLostError if nothing
  // can replace the faulty part. A part in quarantine that nothing replaces answers nothing more:
  // finish(), begin() and check() of all pipelines that use it throw DeviceLostError. Pipelines of
  // engines without a kernel record compute no canary.
  virtual void set_canary(const Canary& /*canary*/, std::chrono::milliseconds /*interval*/) {}
  // Computes the canary by each kernel for which an interval has passed since the last time, and by
  // the replacement of a kernel that is wrong. Called by the caller of begin(), while no batch has
  // begun. Throws as finish() does. Before the first batch, until it has succeeded once, it also
  // throws ResourceError if all products are right and the responses made of them are not. The
  // kernel record counts this failure, and no kernel comes into quarantine: other pipelines may be
  // right.
  virtual void check() {}
};

}  // namespace blindfuse
