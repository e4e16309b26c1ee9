#include "host/engines/watched_engines.h"

#include <utility>

namespace blindfuse {
namespace {

using SharedCalls = std::shared_ptr<DeviceCalls>;
using Call = DeviceCalls::Call;

// Owns a Thing and records its destruction as a device call.
template <typename Thing>
class Held {
 public:
  Held(std::unique_ptr<Thing> thing, SharedCalls calls)
      : thing_(std::move(thing)), calls_(std::move(calls)) {}
  ~Held() {
    const Call call(calls_, "giving its memory back");
    thing_.reset();
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  Thing* operator->() const { return thing_.get(); }
  Thing& operator*() const { return *thing_; }
  const SharedCalls& calls() const { return calls_; }

 private:
  std::unique_ptr<Thing> thing_;
  const SharedCalls calls_;
};

class WatchedPanelProducts final : public PanelProducts {
 public:
  WatchedPanelProducts(std::unique_ptr<PanelProducts> products, const SharedCalls& calls)
      : products_(std::move(products), calls) {}

  std::span<uint32_t> buffer() override {
    const Call call(products_.calls(), "a panel of the hint");
    return products_->buffer();
  }
  void add(QueryBatch queries, RowRange rows) override {
    const Call call(products_.calls(), "a panel of the hint");
    products_->add(queries, rows);
  }
  std::span<const uint32_t> finish() override {
    const Call call(products_.calls(), "the last panels of the hint");
    return products_->finish();
  }

 private:
  const Held<PanelProducts> products_;
};

class WatchedPackMaker final : public PackMaker {
 public:
  WatchedPackMaker(std::unique_ptr<PackMaker> maker, const SharedCalls& calls)
      : maker_(std::move(maker), calls) {}

  void set_columns(uint64_t first, std::span<const uint8_t> bytes, size_t bucket) override {
    const Call call(maker_.calls(), "columns on their way to it");
    maker_->set_columns(first, bytes, bucket);
  }
  void seal() override {
    const Call call(maker_.calls(), "making packing tables");
    maker_->seal();
  }
  void make(uint32_t pack, MutablePackingTable table, ring::MutablePolynomial mask) override {
    const Call call(maker_.calls(), "a packing table on its way back");
    maker_->make(pack, table, mask);
  }

 private:
  const Held<PackMaker> maker_;
};

class WatchedAnswerPipeline final : public AnswerPipeline {
 public:
  WatchedAnswerPipeline(std::unique_ptr<AnswerPipeline> pipeline, const SharedCalls& calls)
      : pipeline_(std::move(pipeline), calls) {}

  size_t depth() const override { return pipeline_->depth(); }
  void put(size_t slot, std::span<const uint8_t> query) override { pipeline_->put(slot, query); }
  void move(size_t from, size_t to) override { pipeline_->move(from, to); }
  void begin(size_t first, size_t count) override { pipeline_->begin(first, count); }
  std::span<const uint8_t> finish() override { return pipeline_->finish(); }

  void set_canary(const Canary& canary, std::chrono::milliseconds interval) override {
    const Call call(pipeline_.calls(), "a query of the server's own");
    pipeline_->set_canary(canary, interval);
  }
  void check() override {
    const Call call(pipeline_.calls(), "a query of the server's own");
    pipeline_->check();
  }

 private:
  const Held<AnswerPipeline> pipeline_;
};

class WatchedEngine final : public Engine {
 public:
  WatchedEngine(std::unique_ptr<Engine> engine, const SharedCalls& calls)
      : engine_(std::move(engine), calls) {}

  std::string_view name() const override { return engine_->name(); }
  std::string hardware() const override { return engine_->hardware(); }
  uint64_t row_count() const override { return engine_->row_count(); }
  uint64_t column_count() const override { return engine_->column_count(); }
  uint64_t host_bytes(std::span<const ColumnRange> shared, const Engine* other) const override {
    return engine_->host_bytes(shared, other == nullptr ? nullptr : &unwrapped(*other));
  }

  void set_columns(uint64_t first, std::span<const uint8_t> bytes) override {
    const Call call(engine_.calls(), "columns on their way to it");
    engine_->set_columns(first, bytes);
  }
  bool share_columns(uint64_t first, uint64_t count, const Engine& other) override {
    const Call call(engine_.calls(), "columns of the epoch before");
    return engine_->share_columns(first, count, unwrapped(other));
  }
  void seal() override {
    const Call call(engine_.calls(), "a checksum of the matrix");
    engine_->seal();
  }
  void check_kernels(const Canary& canary, size_t batch_max) override {
    const Call call(engine_.calls(), "a check of the kernels on the matrix");
    engine_->check_kernels(canary, batch_max);
  }
  void multiply_columns(QueryBatch queries, RowRange rows, ColumnRange columns,
                        ProductBatch products) override {
    const Call call(engine_.calls(), "a product");
    engine_->multiply_columns(queries, rows, columns, products);
  }
  void multiply_buckets(QueryBatch queries, size_t bucket_count, ProductBatch products) override {
    const Call call(engine_.calls(), "a product");
    engine_->multiply_buckets(queries, bucket_count, products);
  }

  std::unique_ptr<PanelProducts> make_panel_products(size_t count, uint64_t rows_max) override {
    const Call call(engine_.calls(), "taking memory for panels");
    return std::make_unique<WatchedPanelProducts>(engine_->make_panel_products(count, rows_max),
                                                  engine_.calls());
  }
  std::unique_ptr<AnswerPipeline> make_answer_pipeline(WireBits bits, size_t slot_count,
                                                       size_t batch_max) override {
    const Call call(engine_.calls(), "taking memory for batches");
    return std::make_unique<WatchedAnswerPipeline>(
        engine_->make_answer_pipeline(bits, slot_count, batch_max), engine_.calls());
  }
  std::unique_ptr<AnswerPipeline> make_packed_answer_pipeline(
      WireBits bits, std::span<const SharedPackingTable> tables, size_t slot_count,
      size_t batch_max, const SecondLevelSpec* second, size_t bucket_count) override {
    const Call call(engine_.calls(), "packing tables on their way to it", kDeviceStartLimit);
    return std::make_unique<WatchedAnswerPipeline>(
        engine_->make_packed_answer_pipeline(bits, tables, slot_count, batch_max, second,
                                             bucket_count),
        engine_.calls());
  }

 private:
  // Engines of a kind know each other.
  static const Engine& unwrapped(const Engine& other) {
    const auto* watched = dynamic_cast<const WatchedEngine*>(&other);
    return watched == nullptr ? other : *watched->engine_;
  }

  const Held<Engine> engine_;
};

class WatchedEngineMaker final : public EngineMaker {
 public:
  WatchedEngineMaker(std::unique_ptr<EngineMaker> maker, SharedCalls calls)
      : maker_(std::move(maker)), calls_(std::move(calls)) {}

  std::unique_ptr<Engine> make_engine(uint64_t row_count, uint64_t column_count) const override {
    const Call call(calls_, "taking memory for the matrix", kDeviceStartLimit);
    return std::make_unique<WatchedEngine>(maker_->make_engine(row_count, column_count), calls_);
  }
  std::unique_ptr<Engine> make_serving_engine(uint64_t row_count, uint64_t column_count,
                                              const ServingNeeds& needs) const override {
    const Call call(calls_, "taking memory for the matrix", kDeviceStartLimit);
    return std::make_unique<WatchedEngine>(
        maker_->make_serving_engine(row_count, column_count, needs), calls_);
  }
  std::shared_ptr<KernelRecord> kernel_record() const override { return maker_->kernel_record(); }
  size_t packs_at_once(uint64_t row_count, unsigned thread_count) const override {
    return maker_->packs_at_once(row_count, thread_count);
  }
  std::unique_ptr<PackMaker> make_pack_maker(std::span<const uint32_t> blocks,
                                             std::span<const uint32_t> key_masks,
                                             uint64_t row_count,
                                             uint64_t column_count) const override {
    const Call call(calls_, "taking memory for packs", kDeviceStartLimit);
    return std::make_unique<WatchedPackMaker>(
        maker_->make_pack_maker(blocks, key_masks, row_count, column_count), calls_);
  }

 private:
  const std::unique_ptr<EngineMaker> maker_;
  const SharedCalls calls_;
};

}  // namespace

std::unique_ptr<EngineMaker> make_watched_engine_maker(std::unique_ptr<EngineMaker> maker,
                                                       std::shared_ptr<DeviceCalls> calls) {
  return std::make_unique<WatchedEngineMaker>(std::move(maker), std::move(calls));
}

}  // namespace blindfuse
