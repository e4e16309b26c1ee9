#include "host/server/epochs/host_answer_pipeline.h"

#include <algorithm>
#include <new>
#include <string>
#include <vector>

#include "src/bit_packing.h"
#include "src/errors.h"

namespace blindfuse {
namespace {

// Not cleared: slots that are never used never become memory.
std::unique_ptr<uint32_t[]> allocate_words(uint64_t count, uint64_t words_each, const char* what) {
  try {
    return std::make_unique_for_overwrite<uint32_t[]>(count * words_each);
  } catch (const std::bad_alloc&) {
    throw EngineTrouble("no memory for the " + std::string(what) + " of " + std::to_string(count) +
                        " queries, " + std::to_string(count * words_each * sizeof(uint32_t)) +
                        " bytes; lower --queue-max or --batch-max");
  }
}

class HostAnswerPipeline final : public AnswerPipeline {
 public:
  HostAnswerPipeline(Engine& engine, WireBits bits, size_t slot_count, size_t batch_max)
      : engine_(engine),
        bits_(bits),
        words_(allocate_words(slot_count, engine.row_count(), "words")),
        products_(allocate_words(batch_max, engine.column_count(), "products")) {}

  size_t depth() const override { return 1; }

  void put(size_t slot, std::span<const uint8_t> query) override {
    const uint64_t rows = engine_.row_count();
    unpack_restored(query, bits_.query, 0, {words_.get() + slot * rows, rows});
  }

  void move(size_t from, size_t to) override {
    const uint64_t rows = engine_.row_count();
    std::copy_n(words_.get() + from * rows, rows, words_.get() + to * rows);
  }

  void begin(size_t first, size_t count) override {
    first_ = first;
    count_ = count;
  }

  std::span<const uint8_t> finish() override {
    const uint64_t rows = engine_.row_count();
    const uint64_t columns = engine_.column_count();
    std::fill_n(products_.get(), count_ * columns, 0u);
    engine_.multiply({words_.get() + first_ * rows, count_, rows}, {0, rows},
                     {products_.get(), count_, columns});
    const uint64_t response_bytes = packed_bytes(columns, bits_.response);
    responses_.resize(count_ * response_bytes);
    for (size_t i = 0; i < count_; ++i) {
      pack_rounded({products_.get() + i * columns, columns}, bits_.response,
                   std::span(responses_).subspan(i * response_bytes, response_bytes));
    }
    return responses_;
  }

 private:
  Engine& engine_;
  const WireBits bits_;
  const std::unique_ptr<uint32_t[]> words_;     // R for each slot
  const std::unique_ptr<uint32_t[]> products_;  // C for each query of a batch
  std::vector<uint8_t> responses_;
  size_t first_ = 0;
  size_t count_ = 0;
};

}  // namespace

std::unique_ptr<AnswerPipeline> make_host_answer_pipeline(Engine& engine, WireBits bits,
                                                          size_t slot_count, size_t batch_max) {
  return std::make_unique<HostAnswerPipeline>(engine, bits, slot_count, batch_max);
}

}  // namespace blindfuse
