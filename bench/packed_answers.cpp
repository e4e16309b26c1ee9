// What packing costs in addition to the scan: whole answers to packed queries, from the bytes of
// the query to those of the response, with one level and with two, and the product alone, in turns
// on the same engine. The layout is the planner's for 2^20 keys with values of 1016 bytes. And
// packing alone, by every instruction set there is. One thread, but where a name says otherwise.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "bench/yardsticks.h"
#include "host/cpu/packing/batch_packer.h"
#include "host/cpu/packing/packing_keys.h"
#include "host/engines/engine_factory.h"
#include "host/system/memory.h"
#include "src/arithmetic/layout.h"
#include "src/arithmetic/little_endian.h"
#include "src/arithmetic/ring/packing_keys.h"
#include "src/arithmetic/ring/prime_field.h"
#include "src/arithmetic/second_level_spec.h"
#include "src/protocol/public_polynomials.h"

namespace blindfuse {
namespace {

using benchmark::Counter;
using benchmark::State;

constexpr size_t kBatchMax = 64;

Layout planned_layout() {
  Layout layout;
  layout.key_count = 1 << 20;
  layout.shard_count = 32;
  layout.row_count = 40'960;
  layout.segment_length = 2048;
  layout.record = {8, 0, 1016};
  layout.lwe = find_lwe_params("ring-2048");
  layout.query_bits = 26;
  layout.response_bits = 10;
  layout.hint_bits = 17;
  check_layout(layout);
  return layout;
}

// The same with a second level of one shard a group.
Layout two_level_layout() {
  Layout layout = planned_layout();
  layout.second = SecondLevel{
      .group_shards = 1, .query_bits = 22, .mask_bits = 17, .response_bits = 15, .key_order = 0};
  return layout;
}

// An engine with a random matrix and tables of random words, made once for each number of threads,
// as they have 2.2 GB. What they hold does not matter to the time.
struct Server {
  const Layout layout = planned_layout();
  std::unique_ptr<Engine> engine;
  std::vector<SharedPackingTable> tables;
  std::unique_ptr<AnswerPipeline> pipeline, two_levels;

  explicit Server(unsigned threads)
      : engine(make_engine("cpu", layout.row_count, layout.column_count(), threads)) {
    std::mt19937_64 random(1);
    std::vector<uint8_t> column(layout.row_count);
    for (uint64_t c = 0; c < layout.column_count(); ++c) {
      for (size_t i = 0; i < column.size(); i += 8) store_le(&column[i], uint64_t{random()});
      engine->set_columns(c, column);
    }
    engine->seal();
    for (uint32_t i = 0; i < layout.pack_count(); ++i) tables.push_back(random_table(random));
    pipeline = engine->make_packed_answer_pipeline({layout.query_bits, layout.response_bits},
                                                   tables, kBatchMax, kBatchMax);
    const Layout both = two_level_layout();
    const SecondLevelPolynomials second(both, ring::PublicPolynomials{ChaChaKey{}});
    const SecondLevelSpec spec = second.spec(both);
    two_levels = engine->make_packed_answer_pipeline({layout.query_bits, layout.response_bits},
                                                     tables, kBatchMax, kBatchMax, &spec);
    std::vector<uint8_t> query(layout.query_bytes());
    for (size_t slot = 0; slot < kBatchMax; ++slot) {
      for (size_t i = 0; i < layout.query_words_bytes(); ++i) {
        query[i] = static_cast<uint8_t>(random());
      }
      for (size_t i = layout.query_words_bytes(); i < query.size(); i += 4) {
        store_le(&query[i], static_cast<uint32_t>(random() % ring::kPackingModulus));
      }
      pipeline->put(slot, query);
      std::vector<uint8_t> more(query.size() + spec.query_bytes());
      for (uint8_t& byte : more) byte = static_cast<uint8_t>(random());
      std::ranges::copy(query, more.begin());
      two_levels->put(slot, more);
    }
  }

  static SharedPackingTable random_table(std::mt19937_64& random) {
    const auto memory = map_memory("a packing table", kTableBytes);
    auto* words = static_cast<uint32_t*>(memory.get());
    for (size_t i = 0; i < kTableWords; ++i) {
      words[i] = static_cast<uint32_t>(random() % ring::kPackingModulus);
    }
    return {memory, words};
  }
};

Server& server(unsigned threads = 1) {
  static std::unique_ptr<Server> made;
  static unsigned made_for = 0;
  if (made_for != threads) {
    made.reset();  // not both at the same time
    made = std::make_unique<Server>(threads);
    made_for = threads;
  }
  return *made;
}

// Effective bytes: the matrix once for every query.
void report(State& state, size_t batch) {
  const double bytes =
      static_cast<double>(server().layout.matrix_bytes()) * static_cast<double>(batch);
  state.counters["bytes_per_second"] =
      Counter(bytes, Counter::kIsIterationInvariantRate, Counter::OneK::kIs1000);
}

void answer_batches(State& state, AnswerPipeline& pipeline) {
  const auto batch = static_cast<size_t>(state.range(0));
  for (auto _ : state) {
    pipeline.begin(0, batch);
    benchmark::DoNotOptimize(pipeline.finish().data());
  }
  report(state, batch);
}

void PackedAnswers(State& state) { answer_batches(state, *server().pipeline); }
void TwoLevels(State& state) { answer_batches(state, *server().two_levels); }
void PackedAnswersOnTwoThreads(State& state) { answer_batches(state, *server(2).pipeline); }
void TwoLevelsOnTwoThreads(State& state) { answer_batches(state, *server(2).two_levels); }

void ProductsAlone(State& state) {
  const auto batch = static_cast<size_t>(state.range(0));
  const Layout& layout = server().layout;
  std::vector<uint32_t> words(batch * layout.row_count);
  std::mt19937 random(2);
  for (uint32_t& word : words) word = static_cast<uint32_t>(random());
  std::vector<uint32_t> products(batch * layout.column_count());
  for (auto _ : state) {
    server().engine->multiply({words.data(), batch, layout.row_count}, {0, layout.row_count},
                              {products.data(), batch, layout.column_count()});
  }
  report(state, batch);
}

void PackBatch(State& state, const RingKernel& kernel) {
  const auto batch = static_cast<size_t>(state.range(0));
  const size_t packs = server().tables.size();
  std::mt19937 random(3);
  std::vector<uint8_t> key_bytes(ring::kKeyBytes);
  std::vector<PackingKeys> keys;
  for (size_t i = 0; i < batch; ++i) {
    for (size_t at = 0; at < key_bytes.size(); at += 4) {
      store_le(&key_bytes[at], static_cast<uint32_t>(random() % ring::kPackingModulus));
    }
    keys.push_back(PackingKeys::read(key_bytes));
  }
  const std::vector<uint32_t> products(packs * kPackColumns, 0x9e3779b9);
  std::vector<std::vector<uint32_t>> bodies(batch, std::vector<uint32_t>(packs * ring::kDimension));
  std::vector<BatchPacker::Query> queries;
  for (size_t i = 0; i < batch; ++i) queries.push_back({keys[i].words(), products, bodies[i]});
  WorkerThreads threads(1);
  BatchPacker packer(server().tables, threads, kernel);
  // With too few pairs of a query and a table, the kernel with AMX packs by AVX-512.
  const bool by_batches = kernel.batch != nullptr && packer.pays(batch);
  const std::string_view unit = kernel.batch != nullptr && !by_batches ? "avx512" : kernel.name;
  double peak = 0, seconds = 0;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    packer.pack(queries);
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    state.PauseTiming();
    peak += bench::peak_packing_products(unit, threads);
    state.ResumeTiming();
  }
  // Of the instruction's rate in the same seconds. A table's word makes a product a query.
  if (peak > 0) {
    const auto runs = static_cast<double>(state.iterations());
    const double made = static_cast<double>(batch * packs) * kTableWords * runs;
    state.counters["of_peak"] = made / seconds / (peak / runs);
  }
  state.counters["pack_and_query"] = Counter(static_cast<double>(batch * server().tables.size()),
                                             Counter::kIsIterationInvariantRate | Counter::kInvert);
}

void batches(benchmark::internal::Benchmark* each) {
  each->ArgName("batch")->Arg(1)->Arg(8)->Arg(64)->Unit(benchmark::kMillisecond);
}
BENCHMARK(ProductsAlone)->Apply(batches);
BENCHMARK(PackedAnswers)->Apply(batches);
BENCHMARK(TwoLevels)->Apply(batches);
BENCHMARK(PackedAnswersOnTwoThreads)->Apply(batches)->UseRealTime();
BENCHMARK(TwoLevelsOnTwoThreads)->Apply(batches)->UseRealTime();

const int kRegistered = [] {
  for (const RingKernel& kernel : ring_kernels()) {
    benchmark::RegisterBenchmark(("PackBatch/" + std::string(kernel.name)).c_str(),
                                 [&kernel](State& state) { PackBatch(state, kernel); })
        ->Apply(batches)
        ->Arg(16);
  }
  return 0;
}();

}  // namespace
}  // namespace blindfuse
