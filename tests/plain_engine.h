// An engine of plain loops, whose matrix tests can look into.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "src/engine.h"

namespace blindfuse::support {

class PlainEngine : public Engine {
 public:
  PlainEngine(uint64_t row_count, uint64_t column_count)
      : row_count_(row_count), column_count_(column_count), bytes_(row_count * column_count) {}

  static std::unique_ptr<Engine> make(uint64_t row_count, uint64_t column_count) {
    return std::make_unique<PlainEngine>(row_count, column_count);
  }
  // What a database was loaded with, when it was loaded with make().
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

  void multiply(QueryBatch queries, RowRange rows, ProductBatch products) override {
    for (size_t b = 0; b < queries.count; ++b) {
      for (uint64_t c = 0; c < column_count_; ++c) {
        for (uint64_t r = rows.first; r < rows.last; ++r) {
          const uint64_t i = r - rows.first;
          products.words[b * products.stride + c] +=
              queries.words[b * queries.stride + i / 64 * queries.panel_stride + i % 64] *
              static_cast<uint32_t>(int32_t{at(r, c)});
        }
      }
    }
  }

  std::unique_ptr<PanelProducts> make_panel_products(size_t, uint64_t) override { return nullptr; }
  std::unique_ptr<AnswerPipeline> make_answer_pipeline(WireBits, size_t, size_t) override {
    return nullptr;
  }

 private:
  uint64_t row_count_;
  uint64_t column_count_;
  std::vector<uint8_t> bytes_;  // column after column
  bool sealed_ = false;
};

}  // namespace blindfuse::support
