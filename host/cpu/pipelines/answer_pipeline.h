// Computes responses from queries, both bit sequences, for engines that read the host's memory. The
// caller that puts a query unpacks it, and one batch is computed at a time. Makes also the products
// of the hint for them.
#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>

#include "src/base/errors.h"
#include "src/engine/engine.h"

namespace blindfuse {

// Words for each of several queries, in one piece of memory.
class SlotWords {
 public:
  // The words are not cleared, so that unused ones never take memory. Throws ResourceError, with
  // `what` in the message, if the address space is exhausted.
  SlotWords(const char* what, uint64_t count, uint64_t words_each) try
      : words_(std::make_unique_for_overwrite<uint32_t[]>(count * words_each)),
        words_each_(words_each) {
  } catch (const std::bad_alloc&) {
    throw ResourceError("no memory for the " + std::string(what) + " of " + std::to_string(count) +
                        " queries, " + std::to_string(count * words_each * sizeof(uint32_t)) +
                        " bytes; lower --queue-max or --batch-max");
  }

  // The words of query i.
  std::span<uint32_t> operator[](uint64_t i) const {
    return {words_.get() + i * words_each_, words_each_};
  }

 private:
  std::unique_ptr<uint32_t[]> words_;
  uint64_t words_each_;
};

// Uses the engine's multiply(). Takes slot_count * R + batch_max * C words of address space, which
// cost memory only when they are used, and the responses of a batch. The engine outlives it. Throws
// ResourceError if that is not available.
std::unique_ptr<AnswerPipeline> make_cpu_answer_pipeline(Engine& engine, WireBits bits,
                                                         size_t slot_count, size_t batch_max);

// The products that make the hint. No data is moved. Uses the engine's multiply(), for which add()
// waits. Takes count * (rows_max + C) words. The engine outlives it.
std::unique_ptr<PanelProducts> make_cpu_panel_products(Engine& engine, size_t count,
                                                       uint64_t rows_max);

}  // namespace blindfuse
