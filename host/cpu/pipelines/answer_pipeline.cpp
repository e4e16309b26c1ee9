#include "host/cpu/pipelines/answer_pipeline.h"

#include <algorithm>
#include <vector>

#include "src/arithmetic/bit_sequence.h"

namespace blindfuse {
namespace {

class CpuAnswerPipeline final : public AnswerPipeline {
 public:
  CpuAnswerPipeline(Engine& engine, WireBits bits, size_t slot_count, size_t batch_max)
      : engine_(engine),
        bits_(bits),
        words_("words", slot_count, engine.row_count()),
        products_("products", batch_max, engine.column_count()) {}

  size_t depth() const override { return 1; }

  void put(size_t slot, std::span<const uint8_t> query) override {
    read_bit_sequence(query, bits_.query, 0, words_[slot]);
  }

  void move(size_t from, size_t to) override {
    std::ranges::copy(words_[from], words_[to].begin());
  }

  void begin(size_t first, size_t count) override {
    first_ = first;
    count_ = count;
  }

  std::span<const uint8_t> finish() override {
    const uint64_t rows = engine_.row_count();
    const uint64_t columns = engine_.column_count();
    std::fill_n(products_[0].data(), count_ * columns, 0u);
    engine_.multiply({words_[first_].data(), count_, rows}, {0, rows},
                     {products_[0].data(), count_, columns});
    const uint64_t response_bytes = bit_sequence_bytes(columns, bits_.response);
    responses_.resize(count_ * response_bytes);
    for (size_t i = 0; i < count_; ++i) {
      write_bit_sequence(products_[i], bits_.response,
                         std::span(responses_).subspan(i * response_bytes, response_bytes));
    }
    return responses_;
  }

 private:
  Engine& engine_;
  const WireBits bits_;
  const SlotWords words_;     // R for each slot
  const SlotWords products_;  // C for each query of a batch
  std::vector<uint8_t> responses_;
  size_t first_ = 0;
  size_t count_ = 0;
};

}  // namespace

std::unique_ptr<AnswerPipeline> make_cpu_answer_pipeline(Engine& engine, WireBits bits,
                                                         size_t slot_count, size_t batch_max) {
  return std::make_unique<CpuAnswerPipeline>(engine, bits, slot_count, batch_max);
}

}  // namespace blindfuse
