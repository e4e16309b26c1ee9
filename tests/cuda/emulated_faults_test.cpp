// A device that fails at any call of CUDA's, and memory that is short at any allocation: an error
// of the right kind comes out, nothing leaks, and what an older engine answers stays right.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "cuda/cuda_engine.h"
#include "cuda/device/memory.h"
#include "cuda/device/stream.h"
#include "host/cpu/cpu_engine_maker.h"
#include "host/engines/canary_response.h"
#include "src/arithmetic/bit_sequence.h"
#include "src/arithmetic/ring/packing_keys.h"
#include "src/arithmetic/ring/ring_dimension.h"
#include "src/base/errors.h"
#include "tests/cuda/fake_faults.h"
#include "tests/cuda/fake_runtime.h"
#include "tests/support.h"

namespace blindfuse {
namespace {

using support::SeededRandom;

constexpr uint64_t kRows = 200, kColumns = 37, kShared = 20;
constexpr WireBits kBits{26, 11};
constexpr size_t kQueries = 5;

// A matrix with queries, and the CPU's responses and products.
class Problem {
 public:
  Problem() {
    SeededRandom random(150);
    columns_ = random.octets(kRows * kColumns);
    queries_ = random.octets(kQueries * query_bytes());
    for (uint32_t& word : words_) word = random.u32() >> 6 << 6;  // as many bits as queries have
    const auto cpu = make_cpu_engine_maker("", 1)->make_engine(kRows, kColumns);
    cpu->set_columns(0, columns_);
    cpu->seal();
    responses_ = ask(*cpu->make_answer_pipeline(kBits, kQueries, kQueries));
    products_ = product(*cpu);
    Layout layout;
    layout.lwe = find_lwe_params("lwe-1288");
    layout.row_count = kRows;
    layout.query_bits = kBits.query;
    layout.response_bits = kBits.response;
    canary_.words = words_;
    canary_.products = products_;
    complete_canary(canary_, layout, {}, 1);
  }

  std::span<const uint8_t> columns(uint64_t first, uint64_t count) const {
    return std::span(columns_).subspan(first * kRows, count * kRows);
  }
  const Canary& canary() const { return canary_; }
  void expect_right(AnswerPipeline& pipeline) const { EXPECT_EQ(ask(pipeline), responses_); }
  void expect_right(Engine& engine) const { EXPECT_EQ(product(engine), products_); }
  // The same by the pipeline that makes hints.
  void expect_right_panels(Engine& engine) const {
    const auto panels = engine.make_panel_products(1, kRows);
    std::ranges::copy(words_, panels->buffer().begin());
    panels->add({panels->buffer().data(), 1, kRows}, {0, kRows});
    EXPECT_TRUE(std::ranges::equal(panels->finish(), products_));
  }

 private:
  static uint64_t query_bytes() { return bit_sequence_bytes(kRows, kBits.query); }
  std::vector<uint8_t> ask(AnswerPipeline& pipeline) const {
    const std::span queries(queries_);
    for (size_t i = 0; i < kQueries; ++i) {
      pipeline.put(i, queries.subspan(i * query_bytes(), query_bytes()));
    }
    // Two batches overlap where they can.
    pipeline.begin(0, 2);
    std::vector<uint8_t> responses;
    const auto take = [&] {
      const auto some = pipeline.finish();
      responses.insert(responses.end(), some.begin(), some.end());
    };
    if (pipeline.depth() < 2) take();
    pipeline.begin(2, kQueries - 2);
    if (pipeline.depth() >= 2) take();
    take();
    return responses;
  }
  std::vector<uint32_t> product(Engine& engine) const {
    std::vector<uint32_t> product(kColumns);
    engine.multiply({words_.data(), 1, kRows}, {0, kRows}, {product.data(), 1, kColumns});
    return product;
  }

  std::vector<uint8_t> columns_, queries_;
  std::vector<uint32_t> words_ = std::vector<uint32_t>(kRows);
  std::vector<uint8_t> responses_;
  std::vector<uint32_t> products_;
  Canary canary_;
};

const Problem& problem() {
  static const Problem problem;
  return problem;
}

std::unique_ptr<Engine> engine_with(uint64_t first_column, std::string_view kernel = "") {
  auto engine = make_cuda_engine(kernel, 0, std::make_shared<KernelRecord>(), kRows, kColumns);
  engine->set_columns(first_column, problem().columns(first_column, kColumns - first_column));
  return engine;
}

// As a server has it: with kernels that are checked, and a canary with every batch.
std::unique_ptr<AnswerPipeline> pipeline_of(Engine& engine) {
  engine.seal();
  engine.check_kernels(problem().canary(), kQueries);
  auto pipeline = engine.make_answer_pipeline(kBits, kQueries, kQueries);
  pipeline->set_canary(problem().canary(), std::chrono::hours(1));
  pipeline->check();
  return pipeline;
}

// Two epochs of a server, and the work of a build: made, asked, and gone.
void live_whole_life() {
  auto old = engine_with(0);
  auto old_pipeline = pipeline_of(*old);
  problem().expect_right(*old_pipeline);
  const auto next = engine_with(kShared);
  EXPECT_TRUE(next->share_columns(0, kShared, *old));
  const auto pipeline = pipeline_of(*next);
  problem().expect_right(*old_pipeline);
  old_pipeline.reset();
  old.reset();
  problem().expect_right(*pipeline);
  problem().expect_right(*next);
  problem().expect_right_panels(*next);
}

// What comes out; "" when nothing does.
template <typename Work>
std::string error_of(const Work& work) {
  try {
    work();
  } catch (const DeviceLostError&) {
    return "lost";
  } catch (const ResourceError&) {
    return "resource";
  } catch (const UsageError&) {
    return "usage";
  }
  return "";
}

uint64_t calls_of(void (*work)(), const std::string& others) {
  const fake_cuda::ScopedFaults faults(others);
  work();
  return fake_cuda::call_count();
}

// One life for each call at which the device is lost. What is lost with the last calls, which only
// give back, is missed by nobody. others: faults that there are in addition.
void lose_at_every_call(void (*work)(), const std::string& others = "") {
  const uint64_t before = fake_cuda::allocated_bytes();
  const uint64_t calls = calls_of(work, others);
  ASSERT_EQ(fake_cuda::allocated_bytes(), before);
  ASSERT_GT(calls, 50u);
  uint64_t unnoticed = 0;
  for (uint64_t n = 0; n < calls; ++n) {
    {
      const fake_cuda::ScopedFaults faults("lose=any@" + std::to_string(n) + ":700" +
                                           (others.empty() ? "" : "," + others));
      const std::string error = error_of(work);
      EXPECT_TRUE(error.empty() || error == "lost" || error == "resource")
          << error << " after call " << n;
      if (error.empty()) ++unnoticed;
      EXPECT_TRUE(n < calls / 2 ? error == "lost" : true) << error << " after call " << n;
    }
    ASSERT_EQ(fake_cuda::allocated_bytes(), before) << "after call " << n;
  }
  EXPECT_LT(unnoticed, calls / 4);
}

TEST(EmulatedCudaFaults, ALostDeviceComesOutOfEveryCall) { lose_at_every_call(live_whole_life); }

// What returns nothing of use, and is called when all else is over.
bool gives_back(const std::string& call) {
  const std::string_view calls[] = {"cudaFree", "cudaFreeHost", "cudaStreamDestroy",
                                    "cudaEventDestroy", "cudaStreamSynchronize"};
  return std::ranges::count(calls, call) > 0;
}

// One life for each call that fails and leaves no trace in the calls after it: none is passed over.
void fail_every_call(void (*work)(), const std::string& others = "") {
  const uint64_t before = fake_cuda::allocated_bytes();
  const uint64_t calls = calls_of(work, others);
  for (uint64_t n = 0; n < calls; ++n) {
    {
      const fake_cuda::ScopedFaults faults("fail=any@" + std::to_string(n) + ":719" +
                                           (others.empty() ? "" : "," + others));
      const std::string error = error_of(work);
      const std::string call = fake_cuda::struck_call();
      EXPECT_TRUE(error == "lost" || (error.empty() && gives_back(call)))
          << error << " after call " << n << ", " << call;
    }
    ASSERT_EQ(fake_cuda::allocated_bytes(), before) << "after call " << n;
  }
}

TEST(EmulatedCudaFaults, ACallThatFailsOnceIsNotPassedOver) { fail_every_call(live_whole_life); }

std::vector<SharedPackingTable> zero_tables(size_t count) {
  const std::shared_ptr<uint32_t[]> words(new uint32_t[kTableWords]());
  return {count, SharedPackingTable(words, words.get())};
}

// Packed answers likewise, of a matrix, tables and keys of zeros, whose packs are zeros.
void live_packed_life() {
  constexpr uint64_t kFewRows = 130, kFewColumns = 9;
  const auto tables = zero_tables(1);
  const auto engine = make_cuda_engine("", 0, std::make_shared<KernelRecord>(), kFewRows,
                                       kFewColumns, {.batch_max = 1, .pack_count = 1});
  engine->seal();
  Canary canary;
  canary.words.resize(kFewRows);
  canary.products.resize(kFewColumns);
  canary.query.resize(bit_sequence_bytes(kFewRows, kBits.query) + ring::kKeyBytes);
  canary.response.resize(bit_sequence_bytes(kFewColumns, kBits.response));
  engine->check_kernels(canary, 1);
  const auto pipeline = engine->make_packed_answer_pipeline(kBits, tables, 1, 1);
  pipeline->set_canary(canary, std::chrono::hours(1));
  pipeline->check();
  pipeline->put(0, canary.query);
  pipeline->begin(0, 1);
  EXPECT_TRUE(std::ranges::equal(pipeline->finish(), canary.response));
}

// The tables' 403 MB are taken and given back in every life: from the heap, or the system would
// clear them each time.
class EmulatedCudaPackedFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
  }
  void TearDown() override {
    mallopt(M_MMAP_MAX, 65'536);
    mallopt(M_TRIM_THRESHOLD, 128 << 10);
  }

  // Tables and sums stay the zeros that they are without the kernels that take an emulator long.
  static constexpr const char* kFast = "skip=cut_table,skip=sum_points";
};

TEST_F(EmulatedCudaPackedFaults, ALostDeviceComesOutOfEveryCall) {
  lose_at_every_call(live_packed_life, kFast);
}

TEST_F(EmulatedCudaPackedFaults, ACallThatFailsOnceIsNotPassedOver) {
  fail_every_call(live_packed_life, kFast);
}

TEST(EmulatedCudaFaults, MemoryThatIsShortLeavesAnOlderEngineAsItWas) {
  const auto old = engine_with(0);
  old->seal();
  const auto old_pipeline = old->make_answer_pipeline(kBits, kQueries, kQueries);
  const auto next_epoch = [&] {
    const auto next = engine_with(kShared);
    EXPECT_TRUE(next->share_columns(0, kShared, *old));
    next->seal();
    problem().expect_right(*next->make_answer_pipeline(kBits, kQueries, kQueries));
    problem().expect_right(*next);
    problem().expect_right_panels(*next);
  };
  next_epoch();
  const uint64_t before = fake_cuda::allocated_bytes();
  for (const char* call : {"cudaMalloc", "cudaMallocHost"}) {
    size_t n = 0;
    for (;; ++n) {
      std::string error;
      {
        const fake_cuda::ScopedFaults faults("fail=" + std::string(call) + "@" + std::to_string(n) +
                                             ":2");
        error = error_of(next_epoch);
      }
      ASSERT_EQ(fake_cuda::allocated_bytes(), before) << call << " " << n;
      problem().expect_right(*old_pipeline);
      if (error.empty()) break;  // there are no more
      EXPECT_EQ(error, "resource") << call << " " << n;
    }
    EXPECT_GT(n, 5u) << call;
  }
}

TEST(EmulatedCudaFaults, AreNamedWithWhatWasRunning) {
  const auto engine = engine_with(0);
  engine->seal();
  const auto pipeline = engine->make_answer_pipeline(kBits, kQueries, kQueries);
  problem().expect_right(*pipeline);
  const fake_cuda::ScopedFaults faults("fault=scan_mma<16>");
  try {
    pipeline->begin(0, 4);
    pipeline->finish();
    ADD_FAILURE();
  } catch (const DeviceLostError& error) {
    // Not what was finished before.
    const std::string text = error.what();
    EXPECT_NE(
        text.find("; in the device since the last good wait: a batch of 4 queries of 200 rows "
                  "and 37 columns, cut_bit_sequences, scan_mma<16>"),
        std::string::npos)
        << text;
    EXPECT_EQ(text.find("batch of 2"), std::string::npos) << text;
  }
}

// Two batches are under way, and either may have done it.
TEST(EmulatedCudaFaults, NameBothBatchesThatWereRunning) {
  const auto engine = engine_with(0);
  engine->seal();
  const auto pipeline = engine->make_answer_pipeline(kBits, kQueries, kQueries);
  const fake_cuda::ScopedFaults faults("fault=scan_dp4a<2>");
  try {
    pipeline->begin(0, 2);
    pipeline->begin(2, 3);
    pipeline->finish();
    ADD_FAILURE();
  } catch (const DeviceLostError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("a batch of 2 queries"), std::string::npos) << text;
    EXPECT_NE(text.find("scan_dp4a<2>"), std::string::npos) << text;
  }
}

// Nothing is loaded, or compiled, when a client waits for it.
TEST(EmulatedCudaFaults, NoKernelIsLoadedByAClientsBatch) {
  fake_cuda::forget_kernels();
  {
    const auto engine = engine_with(0);
    problem().expect_right(*pipeline_of(*engine));
    problem().expect_right(*engine);
  }
  // Each with every tile that it has.
  constexpr size_t kMost = 65;
  const std::vector<uint8_t> query(bit_sequence_bytes(kRows, kBits.query));
  for (const std::string_view kernel : {"dp4a", "mma", "mma-rows", "wgmma"}) {
    const auto engine = engine_with(0, kernel);
    engine->seal();
    const auto pipeline = engine->make_answer_pipeline(kBits, kMost, kMost);
    for (size_t i = 0; i < kMost; ++i) pipeline->put(i, query);
    for (const size_t count : {1, 2, 3, 4, 8, 16, 32, 33, 65}) {
      pipeline->begin(0, count);
      pipeline->finish();
    }
  }
  // Each with every tile of queries and of packs. What they compute is no matter here.
  const fake_cuda::ScopedFaults fast(
      "skip=cut_bit_sequences,skip=scan_dp4a,skip=scan_mma,skip=cut_table,skip=cut_keys,"
      "skip=sum_points,skip=finish_packs");
  for (const size_t packs : {1, 9}) {
    constexpr size_t kQueriesMax = 17;
    const auto engine =
        make_cuda_engine("", 0, std::make_shared<KernelRecord>(), 1, packs * ring::kDimension);
    engine->seal();
    const auto pipeline =
        engine->make_packed_answer_pipeline(kBits, zero_tables(packs), kQueriesMax, kQueriesMax);
    for (const size_t count : {size_t{1}, kQueriesMax}) {
      pipeline->begin(0, count);
      pipeline->finish();
    }
  }
  std::string late;
  for (const std::string& kernel : fake_cuda::kernels_loaded_late()) late += kernel + " ";
  EXPECT_EQ(late, "");
}

// A thread that has another device current computes on the engine's own.
TEST(EmulatedCudaFaults, EnginesFindTheirDeviceOnAnyThread) {
  const fake_cuda::ScopedFaults two("devices=2");
  auto engine = make_cuda_engine("", 1, std::make_shared<KernelRecord>(), kRows, kColumns);
  std::thread([&] {
    engine->set_columns(0, problem().columns(0, kColumns));
    engine->seal();
    auto pipeline = engine->make_answer_pipeline(kBits, kQueries, kQueries);
    std::thread([&] { problem().expect_right(*pipeline); }).join();
    std::thread([&] { pipeline.reset(); }).join();
    std::thread([&] { problem().expect_right(*engine); }).join();
    std::thread([&] { problem().expect_right_panels(*engine); }).join();
  }).join();
  cudaSetDevice(0);
  engine.reset();
}

TEST(EmulatedCudaFaultsDeathTest, AWrongCurrentDeviceIsFound) {
  EXPECT_DEATH(
      {
        fake_cuda::set_faults("devices=2");
        cudaSetDevice(0);
        const Stream stream;
        const DeviceMemory<uint32_t> words(4);
        cudaSetDevice(1);
        int kernel = 0;
        fake_cuda::launch("none", &kernel, 0, stream.get(), [](fake_cuda::LaunchFault) {});
      },
      "another than the current device");
}

}  // namespace
}  // namespace blindfuse
