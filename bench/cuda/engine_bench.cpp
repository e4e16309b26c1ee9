// Napkin, on an H200 (4.8 TB/s, 990 T multiply-adds of bytes a second) on 16 lanes of PCIe 5 (63
// GB/s), with 26 bits a word. The square's query has 426 KB, 7 us of the transfer; its scan takes
// 0.9 ms up to 52 queries, and 17 us for each one more: the scan is the limit, whatever the batch,
// and so it is for the billion. The tall one's query has 3.8 MB, 61 us; its scan takes 0.26 ms up
// to 52 queries: from five on the transfer is the limit.
//
// The square with packed responses: a query has 25 KB of a key more, 0.4 us of the transfer. The 32
// tables are 0.8 GB, 0.17 ms of reads by the kernels of the scan, up to 52 queries
// (cuda/packing/kernels/point_sums.cuh): a fifth of it.
//
// The hint of 1,048,576 x 1,032 with n = 1,774: 7.4 GB of words, 0.12 s of that PCIe, and 7.7 T
// multiply-adds of bytes, 8 ms of the dense peak. What is left is the host's keystream, which
// blindfuse-bench-stages measures.
//
// The 32 packs of 131,072 x 32,768: 35 T multiply-adds of bytes, 36 ms of the dense peak, for
// kernels that hardly reach half of it (limbs come from the second-level cache); 6 ms of switches
// (cuda/packing/kernels/key_switch_chains.cuh); then 0.8 GB to the host, 13 ms of that PCIe, and
// longer into memory that is not pinned.
#include "bench/cuda/scan_bench.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/cuda/stopwatch.h"
#include "cuda/cuda_engine.h"
#include "cuda/packing/device_packs.h"
#include "host/hint/hint.h"
#include "src/arithmetic/bit_sequence.h"
#include "src/arithmetic/packing_table.h"
#include "src/arithmetic/ring/packing_key_format.h"
#include "src/arithmetic/second_level_spec.h"
#include "src/base/errors.h"
#include "src/engine/engine.h"
#include "src/protocol/public_matrix.h"

namespace blindfuse::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr WireBits kBits{26, 12};
constexpr size_t kRoundBatches = 8;  // at least

constexpr uint32_t kDimension = 1'774;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::unique_ptr<Engine> make_random_engine(const Bench& bench, const Shape& shape) {
  auto engine =
      make_cuda_engine(kernels_of(bench.kernels.front()), kDevice, shape.rows, shape.columns);
  fill_columns(
      bench.random, shape, bench.threads,
      [&](uint64_t first, std::span<const uint8_t> bytes) { engine->set_columns(first, bytes); });
  engine->seal();
  return engine;
}

// The kernels of this engine are checked as a server's are: pipelines check the products of every
// query, and a server never answers without that. A server has the products of its canary from the
// CPU. Here they are the engine's own, which right_kernels() compared with the CPU's.
std::unique_ptr<Engine> make_checked_engine(const Bench& bench, const Shape& shape,
                                            size_t batch_max, size_t buckets) {
  auto engine = make_random_engine(bench, shape);
  Canary canary;
  canary.bucket_count = buckets;
  constexpr uint32_t kSentBits = ~0u << (32 - kBits.query);
  for (const uint32_t word : bench.random.words(shape.rows, 3)) {
    canary.words.push_back(word & kSentBits);
  }
  canary.products.resize(shape.columns);
  engine->multiply({canary.words.data(), 1, shape.rows}, {0, shape.rows},
                   {canary.products.data(), 1, shape.columns});
  for (const uint32_t word : bench.random.words(shape.columns, 4)) {
    canary.weights.push_back(word | 1);
  }
  engine->check_kernels(canary, batch_max);
  return engine;
}

// Measures the seconds from the end of one batch to that of the next, with as many batches begun as
// the pipeline takes.
class PipelineTimer {
 public:
  PipelineTimer(AnswerPipeline& pipeline, size_t batch, double round_seconds)
      : pipeline_(pipeline),
        batch_(batch),
        round_seconds_(round_seconds),
        depth_(pipeline.depth()) {}

  double seconds_a_batch() {
    for (size_t i = 0; i < depth_; ++i) begin();
    pipeline_.finish();
    // The batches are in a steady state from here on: each one that ends makes room for another.
    const auto start = Clock::now();
    size_t count = 0;
    double seconds = 0;
    while (seconds < round_seconds_ || count < kRoundBatches) {
      begin();
      pipeline_.finish();
      ++count;
      seconds = seconds_since(start);
    }
    for (size_t i = 1; i < depth_; ++i) pipeline_.finish();
    return seconds / static_cast<double>(count);
  }

 private:
  // The batch has the slots of the one that ended longest ago.
  void begin() {
    pipeline_.begin(next_ * batch_, batch_);
    next_ = (next_ + 1) % depth_;
  }

  AnswerPipeline& pipeline_;
  const size_t batch_;
  const double round_seconds_;
  const size_t depth_;
  size_t next_ = 0;
};

// query_bytes: of the packed words, and of the key where there is one.
PipelineTimes time_pipeline(const Bench& bench, const Engine& engine, AnswerPipeline& pipeline,
                            uint64_t query_bytes, size_t batch) {
  invariant(pipeline.depth() <= AnswerPipeline::kDepthMax, "there are slots for all batches");
  PipelineTimes times;
  times.query_bytes = query_bytes;
  times.response_bytes = bit_sequence_bytes(engine.column_count(), kBits.response);
  for (size_t slot = 0; slot < AnswerPipeline::kDepthMax * batch; ++slot) {
    pipeline.put(slot, bench.random.part(query_bytes, slot));
  }
  PipelineTimer timer(pipeline, batch, bench.options.sizes().round_seconds);
  std::vector<double> seconds, sent;
  for (unsigned i = 0; i <= bench.options.rounds; ++i) {
    const double sent_now = bench.yardsticks.sent_per_second();
    const double taken = timer.seconds_a_batch();
    if (i == 0) continue;  // warms up
    sent.push_back(sent_now);
    seconds.push_back(taken);
  }
  times.seconds = median(std::move(seconds));
  times.sent = median(std::move(sent));
  return times;
}

void print(const Bench& bench, const Shape& shape, size_t batch, const ScanSeconds& scans,
           PipelineTimes times) {
  const std::string& kernel = bench.kernels.front();
  if (const auto scan = scans.find({kernel, batch}); scan != scans.end()) {
    times.scan_seconds = scan->second;
  }
  bench.report.print(shape, kernel, batch, times);
}

// The tables hold random words. No object owns them: the random bytes stay.
std::vector<SharedPackingTable> random_tables(const Bench& bench, uint64_t count) {
  std::vector<SharedPackingTable> tables;
  for (uint64_t i = 0; i < count; ++i) {
    const auto* words = reinterpret_cast<const uint32_t*>(bench.random.part(kTableBytes, i).data());
    tables.emplace_back(SharedPackingTable(), words);
  }
  return tables;
}

// second: null where there is one level.
void time_packed(const Bench& bench, const Shape& shape, const ScanSeconds& scans,
                 const SecondLevelSpec* second, size_t buckets) {
  std::vector<size_t> batches;
  std::ranges::set_intersection(bench.options.batches, kPackedBatches, std::back_inserter(batches));
  if (batches.empty()) return;
  const auto engine = make_checked_engine(bench, shape, batches.back(), buckets);
  const uint64_t packs = (shape.columns + kPackColumns - 1) / kPackColumns;
  // One for all batches: it takes its time to send the tables.
  const auto pipeline = engine->make_packed_answer_pipeline(
      kBits, random_tables(bench, packs), AnswerPipeline::kDepthMax * batches.back(),
      batches.back(), second, buckets);
  const uint64_t query_bytes = bit_sequence_bytes(buckets * shape.rows, kBits.query) +
                               ring::kKeyBytes + (second != nullptr ? second->query_bytes() : 0);
  for (const size_t batch : batches) {
    PipelineTimes times = time_pipeline(bench, *engine, *pipeline, query_bytes, batch);
    times.packs = packs;
    times.buckets = buckets;
    if (second != nullptr) {
      times.levels = 2;
      times.response_bytes = second->response_bytes();
    }
    print(bench, shape, batch, scans, times);
  }
  bench.report.print_figure();
}

}  // namespace

void time_pipelines(const Bench& bench, const Shape& shape, const ScanSeconds& scans) {
  const auto engine = make_checked_engine(bench, shape, bench.options.batches.back(), 1);
  for (const size_t batch : bench.options.batches) {
    const auto pipeline =
        engine->make_answer_pipeline(kBits, AnswerPipeline::kDepthMax * batch, batch);
    const uint64_t query_bytes = bit_sequence_bytes(shape.rows, kBits.query);
    print(bench, shape, batch, scans, time_pipeline(bench, *engine, *pipeline, query_bytes, batch));
  }
  bench.report.print_figure();
}

void time_packed_pipelines(const Bench& bench, const Shape& shape, const ScanSeconds& scans) {
  time_packed(bench, shape, scans, nullptr, 1);
}

void time_two_levels(const Bench& bench, const Shape& shape, const ScanSeconds& scans) {
  const uint32_t columns = bench.options.shard_columns();
  SecondLevelSpec second{.row_count = static_cast<uint32_t>(shape.columns / columns),
                         .column_count = columns,
                         .word_bits = kBits.response,
                         .query_bits = 22,
                         .mask_bits = 17,
                         .response_bits = 15,
                         // A tiny level has a short key, or an emulated GPU would take minutes.
                         .key_order = columns < kPackColumns ? columns : 0};
  second.blocks = bench.random.words(second.block_count() * uint64_t{ring::kDimension}, 1);
  second.key_masks = bench.random.words(ring::kKeyWords, 2);
  time_packed(bench, shape, scans, &second, 1);
}

void time_buckets(const Bench& bench, const Shape& shape) {
  time_packed(bench, shape, {}, nullptr, bench.options.buckets());
}

void time_hint(const Bench& bench, const Shape& shape) {
  const auto engine = make_random_engine(bench, shape);
  MatrixSeed seed;
  std::ranges::copy(bench.random.part(seed.size(), 0), seed.begin());
  const PublicMatrix public_matrix(seed, kDimension);
  std::vector<uint32_t> hint(kDimension * shape.columns);
  std::vector<double> seconds, sent;
  for (unsigned i = 0; i <= bench.options.rounds; ++i) {
    const double sent_now = bench.yardsticks.sent_per_second();
    const auto start = Clock::now();
    compute_hint(public_matrix, *engine, bench.threads, hint, [](uint64_t) {});
    const double taken = seconds_since(start);
    if (i == 0) continue;  // warms up
    sent.push_back(sent_now);
    seconds.push_back(taken);
  }
  bench.report.print(
      shape, bench.kernels.front(),
      {kDimension, bench.threads.count(), median(std::move(seconds)), median(std::move(sent))});
  bench.report.print_figure();
}

void time_packs(const Bench& bench, const Shape& shape) {
  DeviceMatrix matrix(kDevice, shape.rows, shape.columns, 0);
  fill_columns(
      bench.random, shape, bench.threads,
      [&](uint64_t first, std::span<const uint8_t> bytes) { matrix.set_columns(first, bytes); });
  matrix.check();
  Scanner scanner(matrix, kernels_of(bench.kernels.front()));
  const auto packs = static_cast<uint32_t>((shape.columns + kPackColumns - 1) / kPackColumns);
  const std::vector<uint32_t> buckets(shape.columns);
  std::vector<uint32_t> table(kTableWords);
  std::array<uint32_t, ring::kDimension> mask{};
  std::vector<double> made, brought;
  for (unsigned i = 0; i <= bench.options.rounds; ++i) {
    const auto start = Clock::now();
    DevicePacks made_packs(scanner, matrix, {bench.random.words(shape.rows, 1), buckets},
                           bench.random.words(ring::kKeyWords, 2));
    const double made_now = seconds_since(start);
    const auto start_to_bring = Clock::now();
    for (uint32_t pack = 0; pack < packs; ++pack) {
      made_packs.read(pack, MutablePackingTable(table), mask);
    }
    const double brought_now = seconds_since(start_to_bring);
    if (i == 0) continue;  // warms up
    made.push_back(made_now);
    brought.push_back(brought_now);
  }
  bench.report.print(shape, bench.kernels.front(),
                     PackTimes{packs, median(std::move(made)), median(std::move(brought))});
  bench.report.print_figure();
}

}  // namespace blindfuse::bench
