#include "host/engines/watched_engines.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/arithmetic/ring/ring_dimension.h"
#include "tests/plain_engine.h"

namespace blindfuse {
namespace {

constexpr uint64_t kWatchedRows = 128, kWatchedColumns = 7;

// What is under way when something is called, and which of that is allowed more time.
struct Seen {
  std::shared_ptr<DeviceCalls> calls = std::make_shared<DeviceCalls>();
  std::vector<std::string> all;

  void look(const char* what) {
    const auto call = calls->latest();
    all.push_back(std::string(what) + (!call                       ? ": nothing"
                                       : call->allowed.count() > 0 ? ": starts"
                                                                   : ": is watched"));
  }
};

class SeenPipeline final : public AnswerPipeline {
 public:
  explicit SeenPipeline(Seen& seen) : seen_(seen) {}
  ~SeenPipeline() override { seen_.look("~pipeline"); }
  size_t depth() const override { return 1; }
  void put(size_t, std::span<const uint8_t>) override {}
  void move(size_t, size_t) override {}
  void begin(size_t, size_t) override { seen_.look("begin"); }
  std::span<const uint8_t> finish() override { return {}; }
  void set_canary(const Canary&, std::chrono::milliseconds) override { seen_.look("set_canary"); }
  void check() override { seen_.look("check"); }

 private:
  Seen& seen_;
};

class SeenProducts final : public PanelProducts {
 public:
  explicit SeenProducts(Seen& seen) : seen_(seen) {}
  std::span<uint32_t> buffer() override {
    seen_.look("buffer");
    return {};
  }
  void add(QueryBatch, RowRange) override { seen_.look("add"); }
  std::span<const uint32_t> finish() override {
    seen_.look("finish");
    return {};
  }

 private:
  Seen& seen_;
};

class SeenPackMaker final : public PackMaker {
 public:
  explicit SeenPackMaker(Seen& seen) : seen_(seen) {}
  void set_columns(uint64_t, std::span<const uint8_t>, size_t) override {
    seen_.look("pack columns");
  }
  void seal() override { seen_.look("pack seal"); }
  void make(uint32_t, MutablePackingTable, ring::MutablePolynomial) override { seen_.look("make"); }

 private:
  Seen& seen_;
};

class SeenEngine final : public support::PlainEngine {
 public:
  SeenEngine(uint64_t rows, uint64_t columns, Seen& seen)
      : PlainEngine(rows, columns), seen_(seen) {}
  ~SeenEngine() override { seen_.look("~engine"); }
  void set_columns(uint64_t first, std::span<const uint8_t> bytes) override {
    seen_.look("set_columns");
    PlainEngine::set_columns(first, bytes);
  }
  void seal() override { seen_.look("seal"); }
  void check_kernels(const Canary&, size_t) override { seen_.look("check_kernels"); }
  void multiply_columns(QueryBatch, RowRange, ColumnRange, ProductBatch) override {
    seen_.look("multiply_columns");
  }
  std::unique_ptr<PanelProducts> make_panel_products(size_t, uint64_t) override {
    seen_.look("make_panel_products");
    return std::make_unique<SeenProducts>(seen_);
  }
  std::unique_ptr<AnswerPipeline> make_answer_pipeline(WireBits, size_t, size_t) override {
    seen_.look("make_answer_pipeline");
    return std::make_unique<SeenPipeline>(seen_);
  }
  std::unique_ptr<AnswerPipeline> make_packed_answer_pipeline(WireBits,
                                                              std::span<const SharedPackingTable>,
                                                              size_t, size_t,
                                                              const SecondLevelSpec*,
                                                              size_t) override {
    seen_.look("make_packed_answer_pipeline");
    return std::make_unique<SeenPipeline>(seen_);
  }

 private:
  Seen& seen_;
};

class SeenMaker final : public support::PlainEngineMaker {
 public:
  explicit SeenMaker(Seen& seen) : seen_(seen) {}
  std::unique_ptr<Engine> make_engine(uint64_t rows, uint64_t columns) const override {
    seen_.look("make_engine");
    return std::make_unique<SeenEngine>(rows, columns, seen_);
  }
  std::unique_ptr<Engine> make_serving_engine(uint64_t rows, uint64_t columns,
                                              const ServingNeeds& needs) const override {
    seen_.look(needs.batch_max == 5 ? "make_serving_engine" : "other needs");
    return std::make_unique<SeenEngine>(rows, columns, seen_);
  }
  std::shared_ptr<KernelRecord> kernel_record() const override { return record; }
  std::unique_ptr<PackMaker> make_pack_maker(std::span<const uint32_t>, std::span<const uint32_t>,
                                             uint64_t, uint64_t) const override {
    seen_.look("make_pack_maker");
    return std::make_unique<SeenPackMaker>(seen_);
  }

  const std::shared_ptr<KernelRecord> record = std::make_shared<KernelRecord>();

 private:
  Seen& seen_;
};

class WatchedEngines : public ::testing::Test {
 protected:
  // What was seen since the last time; and nothing is under way any more.
  std::vector<std::string> seen() {
    EXPECT_FALSE(seen_.calls->latest());
    return std::exchange(seen_.all, {});
  }

  Seen seen_;
  const std::unique_ptr<EngineMaker> maker_ =
      make_watched_engine_maker(std::make_unique<SeenMaker>(seen_), seen_.calls);
};

TEST_F(WatchedEngines, AreSeenInEveryCallThatMayHang) {
  auto engine = maker_->make_engine(kWatchedRows, kWatchedColumns);
  engine->set_columns(0, std::vector<uint8_t>(kWatchedRows));
  engine->seal();
  engine->check_kernels({}, 1);
  engine->multiply({}, {}, {});
  EXPECT_EQ(seen(), (std::vector<std::string>{"make_engine: starts", "set_columns: is watched",
                                              "seal: is watched", "check_kernels: is watched",
                                              "multiply_columns: is watched"}));
  engine.reset();
  engine = maker_->make_serving_engine(kWatchedRows, kWatchedColumns, {.batch_max = 5});
  EXPECT_EQ(seen(),
            (std::vector<std::string>{"~engine: is watched", "make_serving_engine: starts"}));

  const auto products = engine->make_panel_products(1, kWatchedRows);
  products->buffer();
  products->add({}, {});
  products->finish();
  EXPECT_EQ(seen(),
            (std::vector<std::string>{"make_panel_products: is watched", "buffer: is watched",
                                      "add: is watched", "finish: is watched"}));

  const auto packs = maker_->make_pack_maker({}, {}, 0, 0);
  packs->set_columns(0, {});
  packs->seal();
  const std::unique_ptr<uint32_t[]> table(new uint32_t[kTableWords]);
  std::array<uint32_t, ring::kDimension> mask;
  packs->make(0, MutablePackingTable(table.get(), kTableWords), mask);
  EXPECT_EQ(seen(), (std::vector<std::string>{"make_pack_maker: starts", "pack columns: is watched",
                                              "pack seal: is watched", "make: is watched"}));
}

// Batches are not: who begins them knows how long they take.
TEST_F(WatchedEngines, HavePipelinesThatAreSeenInTheirChecks) {
  const auto engine = maker_->make_engine(kWatchedRows, kWatchedColumns);
  seen();
  auto pipeline = engine->make_answer_pipeline({}, 1, 1);
  pipeline->set_canary({}, std::chrono::seconds(1));
  pipeline->check();
  pipeline->begin(0, 1);
  pipeline.reset();
  EXPECT_EQ(seen(), (std::vector<std::string>{"make_answer_pipeline: is watched",
                                              "set_canary: is watched", "check: is watched",
                                              "begin: nothing", "~pipeline: is watched"}));
  pipeline = engine->make_packed_answer_pipeline({}, {}, 1, 1);
  EXPECT_EQ(seen(), std::vector<std::string>{"make_packed_answer_pipeline: starts"});
}

TEST_F(WatchedEngines, AreAsThoseThatTheyWatch) {
  const auto old = maker_->make_engine(kWatchedRows, kWatchedColumns);
  old->set_columns(3, std::vector<uint8_t>(kWatchedRows, 9));
  const auto next = maker_->make_engine(kWatchedRows, kWatchedColumns);
  EXPECT_EQ(next->name(), "plain");
  EXPECT_EQ(next->hardware(), "none");
  EXPECT_EQ(next->row_count(), kWatchedRows);
  EXPECT_EQ(next->column_count(), kWatchedColumns);
  EXPECT_EQ(next->host_bytes({}, old.get()), kWatchedRows * kWatchedColumns);
  EXPECT_EQ(next->host_bytes({}, nullptr), kWatchedRows * kWatchedColumns);
  EXPECT_TRUE(next->share_columns(3, 1, *old)) << "each knows what the other one watches";
  EXPECT_NE(maker_->kernel_record(), nullptr);
  EXPECT_EQ(maker_->packs_at_once(1, 1), 1u);
}

}  // namespace
}  // namespace blindfuse
