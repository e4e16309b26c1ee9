// An engine of plain loops, whose matrix tests can look into. All else is as on the CPU.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "host/cpu/pipelines/answer_pipeline.h"
#include "host/cpu/pipelines/pack_maker.h"
#include "host/cpu/pipelines/packed_answer_pipeline.h"
#include "host/cpu/pipelines/second_level_pipeline.h"
#include "host/system/worker_threads.h"
#include "src/engine/engine_maker.h"

namespace blindfuse::support {

class PlainEngine : public Engine {
 public:
  PlainEngine(uint64_t row_count, uint64_t column_count)
      : row_count_(row_count), column_count_(column_count), bytes_(row_count * column_count) {}

  static std::unique_ptr<Engine> make(uint64_t row_count, uint64_t column_count) {
    return std::make_unique<PlainEngine>(row_count, column_count);
  }
  // What a database was loaded with, when it was loaded with kPlainEngines.
  static const PlainEngine& in(const auto& database) {
    return dynamic_cast<const PlainEngine&>(*database.engine);
  }

  int8_t at(uint64_t row, uint64_t column) const {
    return static_cast<int8_t>(bytes_[column * row_count_ + row]);
  }
  bool is_sealed() const { return sealed_; }

  std::string_view name() const override { return "plain"; }
  std::string hardware() const override { return "none"; }
  uint64_t row_count() const override { return row_count_; }
  uint64_t column_count() const override { return column_count_; }

  uint64_t host_bytes(std::span<const ColumnRange>, const Engine*) const override {
    return bytes_.size();
  }
  void set_columns(uint64_t first, std::span<const uint8_t> bytes) override {
    std::copy(bytes.begin(), bytes.end(),
              bytes_.begin() + static_cast<ptrdiff_t>(first * row_count_));
  }
  bool share_columns(uint64_t first, uint64_t count, const Engine& other) override {
    const auto* plain = dynamic_cast<const PlainEngine*>(&other);
    if (plain == nullptr) return false;
    set_columns(first, std::span(plain->bytes_).subspan(first * row_count_, count * row_count_));
    return true;
  }
  void seal() override { sealed_ = true; }

  void multiply_columns(QueryBatch queries, RowRange rows, ColumnRange columns,
                        ProductBatch products) override {
    for (size_t b = 0; b < queries.count; ++b) {
      for (uint64_t c = 0; c < columns.count; ++c) {
        for (uint64_t r = rows.first; r < rows.last; ++r) {
          const uint64_t i = r - rows.first;
          products.words[b * products.stride + c] +=
              queries.words[b * queries.stride + i / 64 * queries.panel_stride + i % 64] *
              static_cast<uint32_t>(int32_t{at(r, columns.first + c)});
        }
      }
    }
  }

  std::unique_ptr<PanelProducts> make_panel_products(size_t count, uint64_t rows_max) override {
    return make_cpu_panel_products(*this, count, rows_max);
  }
  std::unique_ptr<AnswerPipeline> make_answer_pipeline(WireBits bits, size_t slot_count,
                                                       size_t batch_max) override {
    return make_cpu_answer_pipeline(*this, bits, slot_count, batch_max);
  }
  std::unique_ptr<AnswerPipeline> make_packed_answer_pipeline(
      WireBits bits, std::span<const SharedPackingTable> tables, size_t slot_count,
      size_t batch_max, const SecondLevelSpec* second, size_t bucket_count) override {
    packing_threads_ = std::make_unique<WorkerThreads>(2);
    auto first = make_cpu_packed_answer_pipeline(*this, bits, tables, slot_count, batch_max,
                                                 *packing_threads_, bucket_count);
    if (second == nullptr) return first;
    return make_second_level_pipeline(std::move(first), *second, column_count_, slot_count, 2);
  }

 private:
  uint64_t row_count_;
  uint64_t column_count_;
  std::vector<uint8_t> bytes_;  // column after column
  bool sealed_ = false;
  std::unique_ptr<WorkerThreads> packing_threads_;
};

// Makes PlainEngines, and packs as the CPU does.
class PlainEngineMaker : public EngineMaker {
 public:
  std::unique_ptr<Engine> make_engine(uint64_t row_count, uint64_t column_count) const override {
    return PlainEngine::make(row_count, column_count);
  }
  size_t packs_at_once(uint64_t, unsigned) const override { return 1; }
  std::unique_ptr<PackMaker> make_pack_maker(std::span<const uint32_t> blocks,
                                             std::span<const uint32_t> key_masks,
                                             uint64_t row_count,
                                             uint64_t column_count) const override {
    return make_cpu_pack_maker(blocks, key_masks, row_count, column_count);
  }
};

inline const PlainEngineMaker kPlainEngines{};

}  // namespace blindfuse::support
