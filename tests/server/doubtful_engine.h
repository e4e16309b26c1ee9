// An engine for tests whose pipelines fail in their checks as long as a test says so.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "src/base/errors.h"
#include "src/engine/engine.h"

namespace blindfuse::server_testing {

// Otherwise as the one that it is given; is_wrong outlives it.
class DoubtfulEngine final : public Engine {
 public:
  DoubtfulEngine(std::unique_ptr<Engine> engine, const std::atomic<bool>& is_wrong)
      : engine_(std::move(engine)), is_wrong_(is_wrong) {}

  std::string_view name() const override { return engine_->name(); }
  std::string hardware() const override { return engine_->hardware(); }
  uint64_t row_count() const override { return engine_->row_count(); }
  uint64_t column_count() const override { return engine_->column_count(); }
  uint64_t host_bytes(std::span<const ColumnRange> shared, const Engine* other) const override {
    return engine_->host_bytes(shared, other);
  }
  void set_columns(uint64_t first, std::span<const uint8_t> bytes) override {
    engine_->set_columns(first, bytes);
  }
  bool share_columns(uint64_t first, uint64_t count, const Engine& other) override {
    return engine_->share_columns(first, count, other);
  }
  void seal() override { engine_->seal(); }
  void multiply_columns(QueryBatch queries, RowRange rows, ColumnRange columns,
                        ProductBatch products) override {
    engine_->multiply_columns(queries, rows, columns, products);
  }
  std::unique_ptr<PanelProducts> make_panel_products(size_t count, uint64_t rows_max) override {
    return engine_->make_panel_products(count, rows_max);
  }
  std::unique_ptr<AnswerPipeline> make_answer_pipeline(WireBits bits, size_t slot_count,
                                                       size_t batch_max) override {
    return std::make_unique<Pipeline>(engine_->make_answer_pipeline(bits, slot_count, batch_max),
                                      is_wrong_);
  }
  std::unique_ptr<AnswerPipeline> make_packed_answer_pipeline(
      WireBits bits, std::span<const SharedPackingTable> tables, size_t slot_count,
      size_t batch_max, const SecondLevelSpec* second, size_t bucket_count) override {
    return engine_->make_packed_answer_pipeline(bits, tables, slot_count, batch_max, second,
                                                bucket_count);
  }

 private:
  class Pipeline final : public AnswerPipeline {
   public:
    Pipeline(std::unique_ptr<AnswerPipeline> pipeline, const std::atomic<bool>& is_wrong)
        : pipeline_(std::move(pipeline)), is_wrong_(is_wrong) {}
    size_t depth() const override { return pipeline_->depth(); }
    void put(size_t slot, std::span<const uint8_t> query) override { pipeline_->put(slot, query); }
    void move(size_t from, size_t to) override { pipeline_->move(from, to); }
    void begin(size_t first, size_t count) override { pipeline_->begin(first, count); }
    std::span<const uint8_t> finish() override { return pipeline_->finish(); }
    void check() override {
      if (is_wrong_) throw ResourceError("the test's packing is wrong");
    }

   private:
    const std::unique_ptr<AnswerPipeline> pipeline_;
    const std::atomic<bool>& is_wrong_;
  };

  const std::unique_ptr<Engine> engine_;
  const std::atomic<bool>& is_wrong_;
};

}  // namespace blindfuse::server_testing
