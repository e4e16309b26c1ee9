// Measures the cost of each stage, next to the machine's read bandwidth: key hash, filter, matrix,
// keystream, hint, query, decoding. blindfuse-bench-engine has the product.
//
// One thread throughout, so that rates compare with the yardstick and with each other.
// --benchmark_format=json for machines.
#include <benchmark/benchmark.h>
#include <openssl/evp.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "bench/yardsticks.h"
#include "client/decoder.h"
#include "client/prepared_query.h"
#include "host/cpu/cpu_engine.h"
#include "host/cpu/scan/multiply_kernel.h"
#include "host/hint/hint.h"
#include "host/publish/filter.h"
#include "host/publish/shard_stage.h"
#include "src/arithmetic/bit_sequence.h"
#include "src/arithmetic/layout.h"
#include "src/protocol/key_hash.h"
#include "src/protocol/public_matrix.h"

namespace blindfuse {
namespace {

using benchmark::Counter;
using benchmark::State;

constexpr uint64_t kRows = 65'536;
constexpr uint64_t kColumns = 4096;  // 256 MiB: larger than any cache
constexpr uint32_t kDimension = 1774;

void report_bytes(State& state, double bytes_each) {
  state.counters["bytes_per_second"] =
      Counter(bytes_each, Counter::kIsIterationInvariantRate, Counter::OneK::kIs1000);
}

void report(State& state, const char* what, double each) {
  state.counters[what] = Counter(each, Counter::kIsIterationInvariantRate, Counter::OneK::kIs1000);
}

Matrix random_matrix(uint64_t rows, uint64_t columns) {
  Matrix matrix(rows, columns);
  std::mt19937_64 random(1);
  std::vector<uint8_t> bytes(rows * columns);
  for (size_t i = 0; i + 8 <= bytes.size(); i += 8) {
    const uint64_t word = random();
    std::copy_n(reinterpret_cast<const uint8_t*>(&word), 8, bytes.data() + i);
  }
  matrix.set_columns(0, bytes);
  return matrix;
}

std::vector<uint32_t> random_words(size_t count) {
  std::vector<uint32_t> words(count);
  std::mt19937 random(2);
  for (uint32_t& word : words) word = static_cast<uint32_t>(random());
  return words;
}

// The yardstick of everything that passes over memory.
void ReadBandwidth(State& state) {
  WorkerThreads threads(1);
  const Matrix matrix = random_matrix(kRows, kColumns);
  for (auto _ : state) state.SetIterationTime(bench::read_seconds(matrix, threads));
  report_bytes(state, static_cast<double>(kRows * kColumns));
}
BENCHMARK(ReadBandwidth)->UseManualTime()->Unit(benchmark::kMillisecond);

void KeyHashing(State& state) {
  KeyHasher hasher(Salt{});
  std::string key = "0123456789abcdef";
  for (auto _ : state) {
    ++key[0];
    benchmark::DoNotOptimize(hasher(key));
  }
  report(state, "keys_per_second", 1);
}
BENCHMARK(KeyHashing);

std::vector<uint64_t> slot_hashes(size_t count) {
  std::vector<uint64_t> hashes(count);
  std::mt19937_64 random(3);
  for (uint64_t& hash : hashes) hash = random();
  return hashes;
}

uint64_t random_seed() {
  static std::mt19937_64 random(4);
  return random();
}

void BuildFilter(State& state) {
  const auto arity = static_cast<uint32_t>(state.range(0));
  const auto keys = static_cast<uint64_t>(state.range(1));
  const std::vector<uint64_t> hashes = slot_hashes(keys);
  const FuseShape shape = fuse_shape(keys, arity);
  for (auto _ : state) benchmark::DoNotOptimize(build_filter(shape, hashes, random_seed));
  report(state, "keys_per_second", static_cast<double>(keys));
}
BENCHMARK(BuildFilter)
    ->ArgNames({"arity", "keys"})
    ->Args({3, 20'000})
    ->Args({3, 200'000})
    ->Args({4, 20'000})
    ->Args({4, 200'000})
    ->Unit(benchmark::kMillisecond);

void MakeMatrix(State& state) {
  const auto value_bytes = static_cast<uint32_t>(state.range(0));
  constexpr uint64_t kKeys = 20'000;
  const std::vector<uint64_t> hashes = slot_hashes(kKeys);
  const std::string value(value_bytes, 'v');
  std::vector<SpoolEntry> entries(kKeys);
  for (size_t i = 0; i < kKeys; ++i) {
    entries[i].hash.slot_hash = hashes[i];
    entries[i].value = value;
  }
  const FuseShape shape = fuse_shape(kKeys, 3);
  Layout layout;
  layout.row_count = shape.row_count;
  layout.segment_length = shape.segment_length;
  layout.record = record_format_for(8, value_bytes, value_bytes);
  const Filter filter = build_filter(shape, hashes, random_seed);
  for (auto _ : state) {
    make_keyword_matrix(layout, filter, entries,
                        [](std::span<const uint8_t> column) { benchmark::DoNotOptimize(column); });
  }
  report_bytes(state, static_cast<double>(layout.shard_matrix_bytes()));
}
BENCHMARK(MakeMatrix)->ArgName("value_bytes")->Arg(16)->Arg(1024)->Unit(benchmark::kMillisecond);

// The yardstick of the keystream: OpenSSL's cipher over a buffer in the cache, with nothing around
// it.
void ChaCha20(State& state) {
  std::vector<uint8_t> bytes(256 * 1024);
  const std::vector<uint8_t> key(32), counter_and_nonce(16);
  EVP_CIPHER_CTX* context = EVP_CIPHER_CTX_new();
  EVP_EncryptInit_ex(context, EVP_chacha20(), nullptr, key.data(), counter_and_nonce.data());
  int written = 0;
  for (auto _ : state) {
    EVP_EncryptUpdate(context, bytes.data(), &written, bytes.data(),
                      static_cast<int>(bytes.size()));
    benchmark::DoNotOptimize(bytes.data());
  }
  EVP_CIPHER_CTX_free(context);
  report_bytes(state, static_cast<double>(bytes.size()));
}
BENCHMARK(ChaCha20)->Unit(benchmark::kMicrosecond);

void Keystream(State& state) {
  const PublicMatrix matrix(MatrixSeed{}, kDimension);
  std::vector<uint32_t> panel(matrix.panel_words());
  uint64_t j = 0;
  for (auto _ : state) {
    matrix.fill_panel(j++, panel);
    benchmark::DoNotOptimize(panel.data());
  }
  report_bytes(state, static_cast<double>(panel.size() * 4));
}
BENCHMARK(Keystream)->Unit(benchmark::kMicrosecond);

// n R C multiply-adds, A's keystream included.
void ComputeHint(State& state) {
  const auto columns = static_cast<uint64_t>(state.range(0));
  constexpr uint64_t kHintRows = 8192;
  const auto engine = make_cpu_engine(
      choose_kernel(""), std::make_shared<Matrix>(random_matrix(kHintRows, columns)), 1);
  const PublicMatrix public_matrix(MatrixSeed{}, kDimension);
  WorkerThreads threads(1);
  std::vector<uint32_t> hint(columns * kDimension);
  for (auto _ : state) {
    compute_hint(public_matrix, *engine, threads, hint, [](uint64_t) {});
  }
  report(state, "multiply_adds_per_second", static_cast<double>(kHintRows * columns) * kDimension);
}
BENCHMARK(ComputeHint)
    ->ArgName("columns")
    ->Arg(256)
    ->Arg(1024)
    ->Arg(4096)
    ->Unit(benchmark::kMillisecond);

// s * A + e; bytes of A's keystream, made once however many queries there are.
void PrepareQueries(State& state) {
  const auto count = static_cast<size_t>(state.range(0));
  const PublicMatrix matrix(MatrixSeed{}, kDimension);
  for (auto _ : state) {
    benchmark::DoNotOptimize(prepare_queries(matrix, kRows, 1, count, 1, fill_from_system));
  }
  report_bytes(state, static_cast<double>(kRows) * kDimension * 4);
}
BENCHMARK(PrepareQueries)->ArgName("count")->Arg(1)->Arg(8)->Unit(benchmark::kMillisecond);

void PackQuery(State& state) {
  const std::vector<uint32_t> words = random_words(kRows);
  std::vector<uint8_t> packed(bit_sequence_bytes(kRows, 25));
  for (auto _ : state) {
    write_bit_sequence(words, 25, packed);
    benchmark::DoNotOptimize(packed.data());
  }
  report(state, "words_per_second", static_cast<double>(kRows));
}
BENCHMARK(PackQuery)->Unit(benchmark::kMicrosecond);

void UnpackQuery(State& state) {
  std::vector<uint32_t> words(kRows);
  const std::vector<uint8_t> packed(bit_sequence_bytes(kRows, 25));
  for (auto _ : state) {
    read_bit_sequence(packed, 25, 0, words);
    benchmark::DoNotOptimize(words.data());
  }
  report(state, "words_per_second", static_cast<double>(kRows));
}
BENCHMARK(UnpackQuery)->Unit(benchmark::kMicrosecond);

// A record of 1 KB out of a response of one shard.
void Decode(State& state) {
  Layout layout;
  layout.lwe = &lwe_params().front();
  layout.record = record_format_for(8, 1024, 1024);
  layout.response_bits = 12;
  layout.hint_bits = 16;
  const std::vector<uint8_t> response(layout.response_bytes());
  const std::vector<uint8_t> hint(layout.hint_part_bytes());
  for (auto _ : state) {
    SecretBuffer<uint32_t> secret(kDimension);
    const SecretBuffer<uint32_t> words = words_of_shard(layout, 0, response);
    benchmark::DoNotOptimize(
        decode(DecodingSecret(std::move(secret)), layout, 0, words.span(), hint));
  }
}
BENCHMARK(Decode)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace blindfuse
