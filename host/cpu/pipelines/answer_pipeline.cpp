#include "host/cpu/pipelines/answer_pipeline.h"

#include <algorithm>
#include <vector>

#include "host/system/memory.h"
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

namespace {

class CpuPanelProducts final : public PanelProducts {
 public:
  CpuPanelProducts(Engine& engine, size_t count, uint64_t rows_max)
      : engine_(engine),
        count_(count),
        panels_(zeroed_words("panels of vectors", count * rows_max)),
        products_(zeroed_words("hint", count * engine.column_count())) {}

  std::span<uint32_t> buffer() override { return panels_; }
  void add(QueryBatch queries, RowRange rows) override {
    engine_.multiply(queries, rows, {products_.data(), count_, engine_.column_count()});
  }
  std::span<const uint32_t> finish() override { return products_; }

 private:
  Engine& engine_;
  const size_t count_;
  std::vector<uint32_t> panels_;
  std::vector<uint32_t> products_;
};

}  // namespace

std::unique_ptr<PanelProducts> make_cpu_panel_products(Engine& engine, size_t count,
                                                       uint64_t rows_max) {
  return std::make_unique<CpuPanelProducts>(engine, count, rows_max);
}

}  // namespace blindfuse
