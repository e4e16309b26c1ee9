// The device memory that an engine sets aside when it is made: its pipeline never takes more, and
// what will not fit is refused before anything is loaded.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "cuda/cuda_engine_maker.h"
#include "cuda/device/memory.h"
#include "cuda/scan/kernel_kinds.h"
#include "cuda/scan/scan_kernels.h"
#include "src/arithmetic/bit_sequence.h"
#include "src/arithmetic/packing_table.h"
#include "src/arithmetic/ring/packing_key_format.h"
#include "src/base/errors.h"
#include "tests/cuda/fake_faults.h"
#include "tests/cuda/fake_runtime.h"
#include "tests/cuda/small_problem.h"

namespace blindfuse {
namespace {

std::unique_ptr<EngineMaker> maker() { return make_cuda_engine_maker({}, 0); }

// Bytes that the device must have free for such an engine, as its refusal says.
uint64_t bytes_needed(uint64_t rows, uint64_t columns, const ServingNeeds& needs) {
  const auto engines = maker();
  const fake_cuda::ScopedFaults faults("memory=1");
  try {
    engines->make_serving_engine(rows, columns, needs);
  } catch (const ResourceError& error) {
    const std::string text = error.what();
    const size_t at = text.find(" need ");
    if (at != std::string::npos) return std::stoull(text.substr(at + 6));
    ADD_FAILURE() << text;
  }
  return 0;
}

// Returns the message with which memory that is short is refused; "" where it is not.
std::string refusal_of(const std::function<void()>& work, const std::string& faults) {
  const fake_cuda::ScopedFaults scoped(faults);
  try {
    work();
  } catch (const DeviceLostError&) {
    throw;
  } catch (const ResourceError& error) {
    return error.what();
  }
  return "";
}

void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

Canary zero_canary(uint64_t rows, uint64_t columns, const ServingNeeds& needs) {
  Canary canary;
  canary.words.resize(rows);
  canary.bucket_count = needs.bucket_count;
  canary.products.resize(columns);
  canary.weights.assign(columns, 1);
  return canary;
}

// The most that is allocated for an engine that checks its kernels and makes a pipeline.
uint64_t peak_of(uint64_t rows, uint64_t columns, const ServingNeeds& needs, WireBits bits,
                 uint64_t memory) {
  const fake_cuda::ScopedFaults faults("memory=" + std::to_string(memory));
  fake_cuda::reset_peaks();
  const auto engine = maker()->make_serving_engine(rows, columns, needs);
  engine->seal();
  const Canary canary = zero_canary(rows, columns, needs);
  // Kernels that do nothing have the right results for a matrix of zeros.
  fake_cuda::set_faults("memory=" + std::to_string(memory) +
                        ",skip=cut_plain_words,skip=scan_dp4a,skip=scan_mma,skip=weigh_columns");
  engine->check_kernels(canary, needs.batch_max);
  fake_cuda::set_faults("memory=" + std::to_string(memory));
  SecondLevelSpec second = needs.second.value_or(SecondLevelSpec{});
  const std::vector<uint32_t> blocks(uint64_t{second.block_count()} * ring::kDimension);
  const std::vector<uint32_t> key_masks(ring::kKeyWords);
  second.blocks = blocks;
  second.key_masks = key_masks;
  const auto pipeline =
      needs.pack_count == 0
          ? engine->make_answer_pipeline(bits, 3, needs.batch_max)
          : engine->make_packed_answer_pipeline(
                bits, small_problem::zero_tables(needs.pack_count), 3, needs.batch_max,
                needs.second ? &second : nullptr, needs.bucket_count);
  return fake_cuda::peak_bytes(0);
}

TEST(EmulatedCudaMemory, SetsAsideWhatThePipelineTakes) {
  // Shapes that make each part large in turn: limbs, queries, products, responses.
  for (const auto& [rows, columns] : {std::pair<uint64_t, uint64_t>{1, 1},
                                      {129, 7},
                                      {20'000, 40},
                                      {100'001, 3},
                                      {130, 20'000},
                                      {128, 70'001}}) {
    for (const size_t batch_max : {1, 3, 32, 33, 64, 100, 128}) {
      for (const WireBits bits : {WireBits{32, 32}, WireBits{26, 11}}) {
        const ServingNeeds needs{.batch_max = batch_max};
        const uint64_t needed = bytes_needed(rows, columns, needs);
        const uint64_t peak = peak_of(rows, columns, needs, bits, needed);
        EXPECT_LE(peak + kCudaItselfBytes, needed) << rows << " x " << columns << ", " << batch_max;
        if (bits.query < 32) continue;
        EXPECT_GE(peak + kCudaItselfBytes + 4'096, needed)
            << rows << " x " << columns << ", " << batch_max << ": more than it takes";
      }
    }
  }
}

// Memory that is taken before an engine serves, and released again: for few queries of many columns
// the timing of kernels takes more than batches do.
TEST(EmulatedCudaMemory, SetsAsideWhatTheTimingOfKernelsTakes) {
  // The smallest matrix that kernels are timed on.
  constexpr uint64_t kRows = 128, kColumns = (64 << 20) / kRows;
  const ServingNeeds needs{.batch_max = 1};
  const uint64_t needed = bytes_needed(kRows, kColumns, needs);
  const fake_cuda::ScopedFaults faults("memory=" + std::to_string(needed));
  const auto engine = maker()->make_serving_engine(kRows, kColumns, needs);
  engine->seal();
  const uint64_t matrix = fake_cuda::allocated_bytes();
  fake_cuda::reset_peaks();
  fake_cuda::set_faults("memory=" + std::to_string(needed) + ",fail=cudaLaunchKernel:2");
  EXPECT_THROW(engine->make_answer_pipeline({32, 32}, 3, needs.batch_max), ResourceError);
  // By hand: limb rows of 64 queries, of a byte a row, and their products.
  EXPECT_GE(fake_cuda::peak_bytes(0), matrix - 4'096 + 256 * kRows + 64 * 4 * kColumns);
  EXPECT_LE(fake_cuda::peak_bytes(0) + kCudaItselfBytes, needed);
}

// A matrix of zeros, whose products and responses are zeros.
TEST(EmulatedCudaMemory, TakesNoMoreWhileItServes) {
  constexpr uint64_t kRows = 300, kColumns = 41;
  constexpr WireBits kBits{32, 32};
  const ServingNeeds needs{.batch_max = 33};
  const auto engine = maker()->make_serving_engine(kRows, kColumns, needs);
  engine->seal();
  const Canary canary = zero_canary(kRows, kColumns, needs);
  engine->check_kernels(canary, needs.batch_max);
  const auto pipeline = engine->make_answer_pipeline(kBits, 2 * needs.batch_max, needs.batch_max);
  const uint64_t before = fake_cuda::allocated_bytes();
  fake_cuda::reset_peaks();
  const uint64_t on_device = fake_cuda::peak_bytes(0);
  for (const size_t count : {1, 5, 33}) {
    pipeline->begin(0, count);
    pipeline->begin(needs.batch_max, count);
    pipeline->finish();
    pipeline->finish();
  }
  EXPECT_EQ(fake_cuda::peak_bytes(0), on_device);
  EXPECT_EQ(fake_cuda::allocated_bytes(), before) << "nor of the host";
}

// Where another process has taken what was set aside.
TEST(EmulatedCudaMemory, RefusesTheCheckAndTheTimingOfKernelsThatDoNotFit) {
  constexpr uint64_t kRows = 128, kColumns = (64 << 20) / kRows;
  const ServingNeeds needs{.batch_max = 1};
  const auto engine = maker()->make_serving_engine(kRows, kColumns, needs);
  engine->seal();
  const Canary canary = zero_canary(kRows, kColumns, needs);
  const uint64_t before = fake_cuda::allocated_bytes();
  const std::function<void()> works[] = {[&] { engine->check_kernels(canary, 1); },
                                         [&] {
                                           engine->make_answer_pipeline({32, 32}, 1, 1);
                                         }};
  for (const auto& work : works) {
    const std::string text = refusal_of(work, "memory=" + std::to_string(before + 1'000));
    expect_part(text, "the queries that the kernels are ");
    expect_part(text, " bytes of memory; CUDA device 0 has ");
    expect_part(text, "end other processes");
  }
  EXPECT_EQ(fake_cuda::allocated_bytes(), before);
}

// The queries of whole tiles that a kernel takes for this many.
uint32_t room_of(std::string_view kernel, uint32_t count) {
  if (kernel == "dp4a") return count;
  const auto& tiles = kernel == "mma" ? kMmaTileQueries : kWgmmaTileQueries;
  const auto tile = std::ranges::lower_bound(tiles, count);
  if (tile != tiles.end()) return *tile;
  return (count + tiles.back() - 1) / tiles.back() * tiles.back();
}

// Of every kernel's tiles, for every batch that may come in their place.
TEST(EmulatedCudaMemory, HasLimbsForTheTilesOfEveryKernel) {
  for (uint32_t most = 1; most <= 200; ++most) {
    for (const std::string_view name : scan_kernel_names()) {
      for (uint32_t count = 1; count <= most; ++count) {
        ASSERT_GE(limb_rows_for(most), 4 * room_of(name, count))
            << name << ", " << count << " of up to " << most;
      }
    }
  }
}

// For 32 queries, 1,179,648 x 1,040 takes 614 MB in addition to the matrix.
TEST(EmulatedCudaMemory, CountsTheLimbsOfWholeTiles) {
  // By hand: two lanes of 128 limb rows of a byte a row; 32 queries of 4 bytes a row and one word
  // more; 32 products and responses of 4 bytes a column, whole 32 columns of the latter; 32 sums.
  // What products are checked with: 4 bytes a row and column.
  constexpr uint64_t kRows = 1'179'648, kColumns = 1'040;
  constexpr uint64_t kBeside =
      2 * (128 * kRows + 32 * 4 * (kRows + 1) + 32 * 4 * kColumns + 32 * 4 * 1'056 + 32 * 4) +
      4 * (kRows + kColumns);
  EXPECT_EQ(bytes_needed(kRows, kColumns, {.batch_max = 32}),
            kRows * kColumns + kBeside + kCudaItselfBytes);
}

TEST(EmulatedCudaMemory, SetsAsideWhatPackingTakes) {
  const ServingNeeds needs{.batch_max = 3, .pack_count = 1};
  const uint64_t needed = bytes_needed(130, kPackColumns - 7, needs);
  const uint64_t peak = peak_of(130, kPackColumns - 7, needs, {32, 32}, needed);
  EXPECT_LE(peak + kCudaItselfBytes, needed);
  // The buffer in which tables arrive has gone when the batches take their memory.
  EXPECT_GE(peak + kCudaItselfBytes + (7 << 20), needed);
}

TEST(EmulatedCudaMemory, SetsAsideWhatASecondLevelTakes) {
  constexpr WireBits kBits{32, 11};
  const SecondLevelSpec second{.row_count = 100, .column_count = 10, .word_bits = kBits.response};
  const ServingNeeds needs{.batch_max = 3, .pack_count = 1, .second = second};
  const ServingNeeds without{.batch_max = 3, .pack_count = 1};
  const uint64_t needed = bytes_needed(130, 1000, needs);
  // By hand, without what the tables' arrival takes: of each of two lanes three queries' squares of
  // 8 MiB, products of 10 words and responses of 3072 words, and 100 words more of three queries in
  // a lane; a polynomial and three masks of 2048 words; twiddle factors and points
  // of 36,864 bytes.
  EXPECT_EQ(
      needed - bytes_needed(130, 1000, without),
      2 * 3 * (uint64_t{8} << 20) + 4 * (2 * 3 * (10 + 3072) + 2 * 3 * 100 + 4 * 2048) + 36'864);
  const uint64_t peak = peak_of(130, 1000, needs, kBits, needed);
  EXPECT_LE(peak + kCudaItselfBytes, needed);
  EXPECT_GE(peak + kCudaItselfBytes + (7 << 20), needed);
}

TEST(EmulatedCudaMemory, SetsAsideWhatTheWordsOfBucketsTake) {
  constexpr WireBits kBits{32, 11};
  const ServingNeeds needs{.batch_max = 3, .pack_count = 1, .bucket_count = 4};
  const ServingNeeds without{.batch_max = 3, .pack_count = 1};
  const uint64_t needed = bytes_needed(130, 1000, needs);
  // By hand: three buckets' words more, 130 each, of three queries in each of two lanes; and of
  // what products are checked with, up to a multiple of 128 rows.
  EXPECT_EQ(needed - bytes_needed(130, 1000, without), uint64_t{4 * 3} * (2 * 3 * 130 + 256));
  const uint64_t peak = peak_of(130, 1000, needs, kBits, needed);
  EXPECT_LE(peak + kCudaItselfBytes, needed);
  EXPECT_GE(peak + kCudaItselfBytes + (7 << 20), needed);
}

// Before a matrix is loaded that is of no use without them.
TEST(EmulatedCudaMemory, RefusesTablesBeforeTheMatrixIsLoaded) {
  const auto engines = maker();
  // 192 tables of 25 MB are 4.8 GB.
  fake_cuda::reset_peaks();
  const uint64_t before = fake_cuda::peak_bytes(0);
  const std::string text = refusal_of(
      [&] {
        engines->make_serving_engine(130, 192 * kPackColumns, {.batch_max = 3, .pack_count = 192});
      },
      "");
  expect_part(text, "the matrix, the packing tables and their queries need");
  expect_part(text, "mode hint");
  EXPECT_EQ(fake_cuda::peak_bytes(0), before) << "nothing was allocated";
  EXPECT_NO_THROW(engines->make_serving_engine(130, 192 * kPackColumns, {.batch_max = 3}));
}

TEST(EmulatedCudaMemory, RefusesBatchesThatDoNotFitBeforeItAllocates) {
  const auto engine = maker()->make_engine(100'000, 3);
  const uint64_t before = fake_cuda::allocated_bytes();
  const std::string text = refusal_of(
      [&] {
        engine->make_answer_pipeline({32, 32}, 3, 4'000);
      },
      "");
  expect_part(text, "two batches of up to 4000 queries need");
  expect_part(text, "lower --batch-max");
  EXPECT_EQ(fake_cuda::allocated_bytes(), before);
}

// Whose memory it is decides what an operator does.
TEST(EmulatedCudaMemory, TellsTheHostsMemoryFromTheDevices) {
  const auto engine = maker()->make_engine(100, 3);
  const auto work = [&] { engine->make_answer_pipeline({32, 32}, 3, 4); };
  const std::string host = refusal_of(work, "fail=cudaMallocHost@0:2");
  expect_part(host, "the host has no ");
  expect_part(host, "ulimit -l");
  const std::string device = refusal_of(work, "fail=cudaMalloc@0:2");
  expect_part(device, "the device has no ");
  EXPECT_EQ(device.find("ulimit"), std::string::npos) << device;
  EXPECT_EQ(refusal_of(work, ""), "");
}

}  // namespace
}  // namespace blindfuse
