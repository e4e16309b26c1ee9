// What the stages of packed responses cost, by instruction set: transforms, the server's hint
// polynomials and packing tables, packing, a query's second level, and a client's query. One thread
// throughout; bytes of a table are counted once a query.
#include <benchmark/benchmark.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "client/ring_query.h"
#include "host/cpu/packing/hint_polynomials.h"
#include "host/cpu/packing/packing_table_builder.h"
#include "host/cpu/packing/response_packer.h"
#include "host/cpu/packing/second_level_packer.h"
#include "host/system/memory.h"

namespace blindfuse {
namespace {

using benchmark::Counter;
using benchmark::State;
using ring::kDimension;
using Coefficients = std::array<uint32_t, kDimension>;

constexpr uint32_t kRows = 75'776;  // 37 blocks: a million keys in 16 shards

const ring::PublicPolynomials& polynomials() {
  static const ring::PublicPolynomials made(ChaChaKey{});
  return made;
}

std::vector<uint32_t> random_words(size_t count) {
  std::vector<uint32_t> words(count);
  std::mt19937 random(3);
  for (uint32_t& word : words) word = static_cast<uint32_t>(random());
  return words;
}

void report_bytes(State& state, double bytes_each) {
  state.counters["bytes_per_second"] =
      Counter(bytes_each, Counter::kIsIterationInvariantRate, Counter::OneK::kIs1000);
}

void Transform(State& state, const RingKernel& kernel) {
  const auto ntt = make_ntt(kernel, ring::kPackingModulus);
  Coefficients polynomial{};
  polynomial[1] = 1;
  for (auto _ : state) {
    ntt->forward(polynomial);
    ntt->inverse(polynomial);
  }
}

void HintOfAColumn(State& state, const RingKernel& kernel) {
  const HintPolynomials hint(polynomials().blocks(kRows), kernel);
  std::vector<int8_t> column(kRows);
  std::mt19937 random(4);
  for (int8_t& byte : column) byte = static_cast<int8_t>(random());
  Coefficients made;
  for (auto _ : state) hint.compute(column, made);
  report_bytes(state, kRows);
}

void MakeTable(State& state, const RingKernel& kernel) {
  const PackingTableBuilder builder(polynomials().key_masks(), kernel);
  const std::vector<uint32_t> hints = random_words(kPackColumns * kDimension);
  std::vector<uint32_t> table(kTableWords);
  Coefficients mask;
  for (auto _ : state) builder.build(hints, MutablePackingTable(table), mask);
}

void Pack(State& state, const RingKernel& kernel) {
  const auto batch = static_cast<size_t>(state.range(0));
  const ResponsePacker packer(kernel);
  const std::vector<uint32_t> random = random_words(kTableWords);
  const std::unique_ptr<uint32_t, void (*)(void*)> table(
      static_cast<uint32_t*>(std::aligned_alloc(64, 4 * kTableWords)), std::free);
  for (size_t i = 0; i < kTableWords; ++i) table.get()[i] = random[i] % ring::kPackingModulus;
  const std::vector<uint32_t> words = random_words(kPackColumns);
  const std::vector<uint8_t> key_bytes(ring::kKeyBytes, 0x5a);
  const std::vector<PackingKeys> keys(batch, PackingKeys::read(key_bytes));
  std::vector<Coefficients> bodies(batch);
  std::vector<ResponsePacker::Task> tasks;
  for (size_t i = 0; i < batch; ++i) tasks.push_back({keys[i].words(), words, bodies[i]});
  for (auto _ : state) packer.pack(PackingTable(table.get(), kTableWords), tasks);
  report_bytes(state, 4.0 * kTableWords * static_cast<double>(batch));
}

// A full key, with a row of 1024 columns, or a short one, with as many columns as its order.
void SecondLevel(State& state, const RingKernel& kernel) {
  const auto key_order = static_cast<uint32_t>(state.range(0));
  const auto rows = static_cast<size_t>(state.range(1));
  const size_t columns = key_order > 0 ? key_order : kPackColumns;
  const std::vector<uint32_t> blocks =
      polynomials().second_blocks((static_cast<uint32_t>(rows) + 2047) / 2048 * 2048);
  const SecondLevelPacker packer(
      blocks, key_order,
      key_order > 0 ? polynomials().short_key_masks() : polynomials().key_masks(), kernel);
  const PackingKeys key = PackingKeys::read(std::vector<uint8_t>(ring::kKeyBytes, 0x5a));
  std::vector<uint32_t> words = random_words(rows);
  for (uint32_t& word : words) word %= ring::kPackingModulus;
  // In huge pages, as the pipeline has them.
  const auto memory = map_memory("entries", rows * columns * sizeof(int32_t));
  const std::span entries(static_cast<int32_t*>(memory.get()), rows * columns);
  for (size_t i = 0; i < entries.size(); ++i)
    entries[i] = static_cast<int32_t>(i * 77 % 4096) - 2048;
  Coefficients mask;
  std::array<uint32_t, kPackColumns> body;
  SecondLevelPacker::Work work(packer);
  for (auto _ : state) {
    packer.pack({key.words(), words, entries, columns, columns, mask, body}, work);
  }
}

void PrepareRingQuery(State& state) {
  const auto rows = static_cast<uint32_t>(state.range(0));
  for (auto _ : state) {
    benchmark::DoNotOptimize(RingQueryMaker(polynomials(), rows).make(1, fill_from_system));
  }
}
BENCHMARK(PrepareRingQuery)
    ->ArgName("rows")
    ->Arg(32'768)
    ->Arg(kRows)
    ->Unit(benchmark::kMillisecond);

const int kRegistered = [] {
  for (const RingKernel& kernel : ring_kernels()) {
    // Its stages are those of the next one; its batches are in bench/packed_answers.cpp.
    if (kernel.batch != nullptr) continue;
    const auto add = [&](const char* name, void (*stage)(State&, const RingKernel&)) {
      return benchmark::RegisterBenchmark(
          (std::string(name) + "/" + std::string(kernel.name)).c_str(),
          [stage, &kernel](State& state) { stage(state, kernel); });
    };
    add("Transform", Transform)->Unit(benchmark::kMicrosecond);
    add("HintOfAColumn", HintOfAColumn)->Unit(benchmark::kMillisecond);
    add("MakeTable", MakeTable)->Unit(benchmark::kMillisecond);
    add("SecondLevel", SecondLevel)
        ->ArgNames({"key_order", "rows"})
        ->Args({0, 512})
        ->Args({0, 8192})
        ->Args({64, 512})
        ->Args({64, 8192})
        ->Unit(benchmark::kMillisecond);
    add("Pack", Pack)->ArgName("batch")->Arg(1)->Arg(8)->Unit(benchmark::kMillisecond);
  }
  return 0;
}();

}  // namespace
}  // namespace blindfuse
