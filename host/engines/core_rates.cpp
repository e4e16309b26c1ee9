#include "host/engines/core_rates.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "host/cpu/cpu_engine.h"
#include "host/cpu/packing/batch_packer.h"
#include "host/cpu/packing/packing_keys.h"
#include "host/cpu/packing/ring_kernels.h"
#include "host/cpu/packing/second_level_packer.h"
#include "host/cpu/packing/short_traces.h"
#include "host/cpu/packing/traces.h"
#include "host/system/memory.h"
#include "host/system/worker_threads.h"
#include "src/arithmetic/packing_table.h"
#include "src/engine/engine_maker.h"

namespace blindfuse {
namespace {

using ring::kDimension;

constexpr size_t kBatch = ServingNeeds{}.batch_max;

// Returns the least time of several runs: other work of the machine makes some of them longer.
template <typename Work>
double least_seconds(const Work& work) {
  constexpr int kRunsMin = 2;
  constexpr double kSecondsMin = 0.05;
  double least = std::numeric_limits<double>::max(), all = 0;
  for (int run = 0; run < kRunsMin || all < kSecondsMin; ++run) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    least = std::min(least, taken.count());
    all += taken.count();
  }
  return std::max(least, 1e-9);
}

// The rest of a time after a part of it. Both are measured, so that it could come out negative.
double rest_of(double whole, double part) { return std::max(whole - part, 1e-9); }

// Linear congruential generator; values below the packing modulus.
class Lcg {
 public:
  uint32_t next() {
    state_ = state_ * 6'364'136'223'846'793'005u + 1'442'695'040'888'963'407u;
    return static_cast<uint32_t>(state_ >> 32) % ring::kPackingModulus;
  }
  std::vector<uint32_t> some(size_t count) {
    std::vector<uint32_t> words(count);
    for (uint32_t& word : words) word = next();
    return words;
  }

 private:
  uint64_t state_ = 1;
};

// The product. For a query alone the matrix comes from memory, as it is larger than most caches.
void measure_scan(Lcg& numbers, CoreRates& rates) {
  constexpr uint64_t kRows = 12'288, kBatchRows = kRows / 2, kColumns = 10'920;
  const std::unique_ptr<Engine> engine = make_cpu_engine_maker("", 1)->make_engine(kRows, kColumns);
  constexpr uint64_t kColumnsAtOnce = 120;
  const std::vector<uint8_t> bytes(kRows * kColumnsAtOnce, 0x9d);
  for (uint64_t c = 0; c < kColumns; c += kColumnsAtOnce) engine->set_columns(c, bytes);
  engine->seal();
  const std::vector<uint32_t> words = numbers.some(kBatch * kRows);
  std::vector<uint32_t> products(kBatch * kColumns);
  const double alone = least_seconds([&] {
    engine->multiply({words.data(), 1, kRows}, {0, kRows}, {products.data(), 1, kColumns});
  });
  rates.scan_alone_bytes_per_second = static_cast<double>(kRows * kColumns) / alone;
  const double batch = least_seconds([&] {
    engine->multiply({words.data(), kBatch, kBatchRows}, {0, kBatchRows},
                     {products.data(), kBatch, kColumns});
  });
  rates.scan_batch_multiply_adds_per_second =
      static_cast<double>(kBatchRows * kColumns * kBatch) / batch;
}

// This many tables select the kernels for batches that serve large databases.
constexpr size_t kTables = 4;

SharedPackingTable made_up_table(Lcg& numbers) {
  const auto memory = map_memory("a packing table", kTableBytes);
  auto* words = static_cast<uint32_t*>(memory.get());
  for (size_t i = 0; i < kTableWords; ++i) words[i] = numbers.next();
  return {memory, words};
}

double sum_seconds(std::span<const SharedPackingTable> tables) {
  using Line [[gnu::vector_size(16)]] = uint64_t;
  return least_seconds([&] {
    Line sums[8] = {};
    for (const SharedPackingTable& table : tables) {
      const auto* lines = reinterpret_cast<const Line*>(table.get());
      for (size_t i = 0; i < kTableBytes / sizeof(Line); i += 8) {
        for (size_t j = 0; j < 8; ++j) sums[j] += lines[i + j];
      }
    }
    asm volatile("" ::"r"(sums) : "memory");
  });
}

void measure_packing(Lcg& numbers, CoreRates& rates) {
  std::vector<SharedPackingTable> tables;
  for (size_t i = 0; i < kTables; ++i) tables.push_back(made_up_table(numbers));
  const double table_bytes = static_cast<double>(kTables * kTableBytes);
  rates.memory_bytes_per_second = table_bytes / sum_seconds(tables);

  const std::vector<uint32_t> keys = numbers.some(kBatch * PackingKeys::kWords);
  const std::vector<uint32_t> words = numbers.some(kTables * kPackColumns);
  std::vector<uint32_t> bodies(kBatch * kTables * kDimension);
  std::vector<BatchPacker::Query> queries;
  for (size_t i = 0; i < kBatch; ++i) {
    queries.push_back({keys.data() + i * PackingKeys::kWords, words,
                       std::span(bodies).subspan(i * kTables * kDimension, kTables * kDimension)});
  }
  WorkerThreads threads(1);
  BatchPacker packer(tables, threads);
  const double alone = least_seconds([&] { packer.pack(std::span(queries).first(1)); });
  rates.pack_alone_bytes_per_second = table_bytes / alone;
  const double batch = least_seconds([&] { packer.pack(queries); });
  rates.pack_batch_multiply_adds_per_second =
      static_cast<double>(kTables * kTableWords * kBatch) / batch;
}

// A query's second level in a few blocks of rows.
class SecondLevelProblem {
 public:
  static constexpr size_t kBlocks = 8;
  static constexpr uint32_t kOrder = 16;  // of the short key, whose columns are all there

  explicit SecondLevelProblem(Lcg& numbers)
      : blocks_(numbers.some(kBlocks * kDimension)),
        masks_(numbers.some(ring::kDigits * kDimension)),
        key_(numbers.some(PackingKeys::kWords)),
        words_(numbers.some(kBlocks * kDimension)),
        entries_(words_.size() * kOrder) {
    for (size_t i = 0; i < entries_.size(); ++i) entries_[i] = static_cast<int32_t>(i % 1024) - 512;
  }

  // key_order 0 stands for the key that every query has.
  double seconds(size_t blocks, uint32_t key_order, size_t columns) {
    const size_t rows = blocks * kDimension;
    const SecondLevelPacker packer({blocks_.data(), rows}, key_order, masks_);
    SecondLevelPacker::Work work(packer);
    return least_seconds([&] {
      packer.pack({key_.data(), {words_.data(), rows}, entries_, kOrder, columns, mask_, body_},
                  work);
    });
  }

 private:
  const std::vector<uint32_t> blocks_, masks_, key_, words_;
  std::vector<int32_t> entries_;
  std::array<uint32_t, kDimension> mask_{};
  std::array<uint32_t, kPackColumns> body_{};
};

void measure_second_level(Lcg& numbers, CoreRates& rates) {
  const auto ntt = make_ntt(ring_kernels().front(), ring::kPackingModulus);
  const std::vector<uint32_t> column = numbers.some(kDimension);
  Traces all_traces(*ntt);
  all_traces.set(0, ring::Polynomial(column));
  rates.second_traces_seconds = least_seconds([&] {
    for (size_t part = 0; part < Traces::kParts; ++part) all_traces.transform(part, 1);
  });
  constexpr uint32_t kOrder = 64, kOrderLog2 = 6;
  const ShortTraces traces(*ntt, kOrder);
  std::vector<uint32_t> rows = numbers.some(kOrder * kDimension), scratch(rows.size());
  const double short_seconds = least_seconds([&] { traces.transform(rows, scratch); });
  rates.second_short_trace_seconds = short_seconds / (kOrder * kOrderLog2);

  using Problem = SecondLevelProblem;
  Problem problem(numbers);
  const double chain = problem.seconds(1, 0, 1);
  rates.second_switch_seconds =
      rest_of(chain, rates.second_traces_seconds) / static_cast<double>(kKeySwitches);
  const double one = problem.seconds(1, Problem::kOrder, Problem::kOrder);
  const double all = problem.seconds(Problem::kBlocks, Problem::kOrder, Problem::kOrder);
  rates.second_column_seconds = rest_of(all, one) / ((Problem::kBlocks - 1) * Problem::kOrder);
}

}  // namespace

CoreRates measure_core_rates() {
  Lcg numbers;
  CoreRates rates;
  measure_scan(numbers, rates);
  measure_packing(numbers, rates);
  measure_second_level(numbers, rates);
  return rates;
}

}  // namespace blindfuse
