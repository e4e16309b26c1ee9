// The CUDA kernels of the second level of packed responses, run by the emulator: against what they
// compute by definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "src/arithmetic/ring/ntt.h"
#include "tests/cuda/emulator.h"
#include "tests/cuda/kernel_support.h"
#include "tests/cuda/second_level_problem.h"
#include "tests/support.h"

#include "cuda/packing/kernels/second_chains.cuh"
#include "cuda/packing/kernels/second_products.cuh"
#include "cuda/packing/kernels/second_traces.cuh"
#include "cuda/packing/kernels/transpose_squares.cuh"

namespace blindfuse::emulator {
namespace {

using ring::kDimension;
using ring::kOrbit;
using support::SeededRandom;

const ring::PrimeField kField(ring::kPackingModulus);

// Rows of two blocks, the last of them without all of its words.
constexpr SecondLevelSizes kTwoBlocks{.queries = 2,
                                      .rows = kDimension + 300,
                                      .columns = 3,
                                      .words = 3 * (kDimension + 300) - 2,
                                      .key_order = 4};

// Whether the values of columns, the products, or the responses come out right.
bool are_column_values_right(const SecondLevelProblem& problem, const Options& options,
                             Report& report) {
  report = launch_with(options, dim3(3, 2), kNttThreads, kRowSharedBytes, second_column_values,
                       problem.args());
  for (uint32_t at = 0; at < 6; ++at) {
    const SecondLevelProblem::Coefficients expected = problem.hint(at / 3, at % 3);
    const uint32_t* found =
        problem.squares().data() + uint64_t{at / 3} * kPackSquareWords + at % 3 * kRingWords;
    if (!std::equal(expected.begin(), expected.end(), found)) return false;
  }
  return true;
}
bool are_products_right(const SecondLevelProblem& problem, const SecondLevelSizes& sizes,
                        const Options& options, Report& report) {
  report = launch_with(options, dim3((sizes.columns + 31) / 32, sizes.queries), kProductThreads,
                       kProductSharedBytes, second_products, problem.args());
  for (uint32_t i = 0; i < sizes.queries * sizes.columns; ++i) {
    if (problem.products()[i] != problem.product(i / sizes.columns, i % sizes.columns)) {
      return false;
    }
  }
  return true;
}
bool are_responses_right(const SecondLevelProblem& problem, const Options& options,
                         Report& report) {
  report = launch_with(options, dim3(1, 2), kNttThreads, kKeySwitchSharedBytes, second_chains,
                       problem.args());
  const auto is_right = [&](uint32_t query) {
    return std::ranges::equal(problem.found_response(query), problem.expected_response(query));
  };
  return is_right(0) && is_right(1);
}

TEST(CudaSecondLevelKernels, ColumnValuesByDefinition) {
  SeededRandom random(540);
  Report report;
  EXPECT_TRUE(are_column_values_right(SecondLevelProblem(random, kTwoBlocks), {}, report));
}

// w^e of the point.
uint32_t exponent_of(size_t point) {
  uint32_t exponent = 1;
  for (size_t i = 0; i < point % kOrbit; ++i) exponent = exponent * 5 % ring::kOrder;
  return point < kOrbit ? exponent : ring::kOrder - exponent;
}

TEST(CudaSecondLevelKernels, TracesByDefinition) {
  SeededRandom random(541);
  constexpr uint32_t kColumns = 40;
  const SecondLevelProblem problem(
      random, {.queries = 1, .rows = 5, .columns = kColumns, .words = 180, .key_order = 64});
  const SecondLevelArgs args = problem.args();
  launch_with(kUnwatched, dim3(kColumns), kNttThreads, kRowSharedBytes, second_column_values, args);
  // Two tiles of rows have columns of the pack.
  launch_with(kUnwatched, dim3(2, kOrbitWords / 32, 2), kTransposeThreads, kTransposeSharedBytes,
              transpose_squares, args.squares);
  launch_with(kUnwatched, dim3(kOrbitWords), kNttThreads, kRowSharedBytes, second_traces, args);
  std::vector<SecondLevelProblem::Coefficients> hints;
  for (uint32_t c = 0; c < kColumns; ++c) hints.push_back(problem.hint(0, c));
  const uint32_t w = ring::root_of_unity(kField);
  for (int i = 0; i < 200; ++i) {
    const size_t g = random.below(kOrbit), m = random.below(kDimension);
    const uint32_t to_m = kField.power(w, exponent_of(m));
    uint32_t sum = 0, to_mc = 1;
    for (const auto& hint : hints) {
      const size_t point = m / kOrbit * kOrbit + (m + g) % kOrbit;
      sum = kField.add(sum, kField.multiply(to_mc, hint[point]));
      to_mc = kField.multiply(to_mc, to_m);
    }
    ASSERT_EQ(problem.trace(0, 0, g)[m], kField.multiply(sum, kField.inverse(64)))
        << "automorphism " << g << ", point " << m;
    ASSERT_EQ(trace_word(args.squares, {g}, static_cast<uint32_t>(m)), problem.trace(0, 0, g)[m]);
  }
}

TEST(CudaSecondLevelKernels, ProductsByDefinition) {
  SeededRandom random(542);
  Report report;
  for (const SecondLevelSizes& sizes :
       {kTwoBlocks,
        // Numbers and entries as large as can be, and more rows than are reduced at once.
        SecondLevelSizes{.queries = 1,
        .rows = 4100,
        .columns = 33,
        .words = 33 * 4100,
        .key_order = 64,
        .word_bits = 21,
        .query_bits = 32}}) {
    EXPECT_TRUE(are_products_right(SecondLevelProblem(random, sizes), sizes, {}, report));
  }
}

TEST(CudaSecondLevelKernels, ChainsSwitchAsTheHostDoes) {
  SeededRandom random(543);
  Report report;
  // Masks and words of odd numbers of bits, and of all.
  for (const uint32_t bits : {17u, 32u}) {
    const SecondLevelProblem problem(random, {.queries = 2,
                                              .rows = 3,
                                              .columns = 7,
                                              .words = 21,
                                              .key_order = 8,
                                              .mask_bits = bits,
                                              .response_bits = bits});
    EXPECT_TRUE(are_responses_right(problem, {}, report)) << bits << " bits";
  }
}

// The rows of two points, which are the coefficients of the columns.
bool are_traces_right(const Options& options, Report& report) {
  constexpr uint32_t kPoints = 2;
  SeededRandom random(631);
  const SecondLevelProblem problem(random, kTwoBlocks);
  const uint32_t* squares = problem.squares().data();
  const std::vector<uint32_t> before(squares, squares + kPoints * kRingWords);
  report = launch_with(options, dim3(kPoints), kNttThreads, kRowSharedBytes, second_traces,
                       problem.args());
  const auto ntt = ring::portable_ntt(ring::kPackingModulus);
  for (uint32_t at = 0; at < 2 * kPoints; ++at) {
    std::array<uint32_t, kDimension> values{};
    for (uint32_t c = 0; c < kTwoBlocks.columns; ++c) {
      values[c] = kField.multiply(before[at * kOrbit + c], kField.inverse(4));
    }
    ntt->forward(values);
    const auto* half = values.begin() + at % 2 * kOrbit;
    if (!std::equal(half, half + kOrbit, squares + at * kOrbit)) return false;
  }
  return true;
}

const SecondLevelProblem& two_blocks() {
  static SeededRandom random(630);
  static const SecondLevelProblem problem(random, kTwoBlocks);
  return problem;
}

const bool kAdded =
    add_subjects({{"second_column_values",
                   [](const Options& options, Report& report) {
                     return are_column_values_right(two_blocks(), options, report);
                   },
                   {{"ntt.cuh", "ntt_forward", Step::kBlockBarrier, 1, kOwnPlaces}}},
                  {"second_traces",
                   are_traces_right,
                   {{"ntt.cuh", "ntt_forward", Step::kBlockBarrier, 1, kOwnPlaces}}},
                  {"second_products",
                   [](const Options& options, Report& report) {
                     constexpr SecondLevelSizes kSizes{
                         .queries = 2, .rows = 30, .columns = 40, .words = 1'190, .key_order = 64};
                     SeededRandom random(632);
                     static const SecondLevelProblem problem(random, kSizes);
                     return are_products_right(problem, kSizes, options, report);
                   }},
                  // Three switches, of any traces.
                  {"second_chains",
                   [](const Options& options, Report& report) {
                     return are_responses_right(two_blocks(), options, report);
                   },
                   {{"ntt.cuh", "ntt_forward", Step::kBlockBarrier, 1, kOwnPlaces},
                    {"ntt.cuh", "ntt_inverse", Step::kBlockBarrier, 6, kOwnPlaces}}}});

}  // namespace
}  // namespace blindfuse::emulator
