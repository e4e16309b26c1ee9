// The CUDA kernels of the second level of packed responses, run by the emulator: against what they
// compute by definition, in every order that a GPU may choose.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "src/arithmetic/ring/ntt.h"
#include "tests/cuda/emulator.h"
#include "tests/cuda/kernel_support.h"
#include "tests/cuda/second_level_problem.h"
#include "tests/support.h"

#include "cuda/packing/kernels/second_chains.cuh"
#include "cuda/packing/kernels/second_products.cuh"
#include "cuda/packing/kernels/second_traces.cuh"
#include "cuda/packing/kernels/transpose_squares.cuh"

namespace blindfuse {
namespace {

using emulator::kSchedules;
using emulator::launch_with;
using emulator::Schedule;
using emulator::SecondLevelProblem;
using emulator::SecondLevelSizes;
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

TEST(CudaSecondLevelKernels, ColumnValuesByDefinition) {
  SeededRandom random(540);
  for (const Schedule& schedule : kSchedules) {
    const SecondLevelProblem problem(random, kTwoBlocks);
    launch_with(schedule, dim3(3, 2), kNttThreads, kRowSharedBytes, second_column_values,
                problem.args());
    for (uint32_t at = 0; at < 6; ++at) {
      const uint32_t query = at / 3, column = at % 3;
      const SecondLevelProblem::Coefficients expected = problem.hint(query, column);
      const uint32_t* found =
          problem.squares().data() + uint64_t{query} * kPackSquareWords + column * kRingWords;
      ASSERT_TRUE(std::equal(expected.begin(), expected.end(), found)) << query << ' ' << column;
    }
  }
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
  for (const Schedule& schedule : {kSchedules[0], kSchedules[2]}) {
    const SecondLevelProblem problem(
        random, {.queries = 1, .rows = 5, .columns = kColumns, .words = 180, .key_order = 64});
    const SecondLevelArgs args = problem.args();
    launch_with(schedule, dim3(kColumns), kNttThreads, kRowSharedBytes, second_column_values, args);
    // Two tiles of rows have columns of the pack.
    launch_with(schedule, dim3(2, kOrbitWords / 32, 2), kTransposeThreads, kTransposeSharedBytes,
                transpose_squares, args.squares);
    launch_with(schedule, dim3(kOrbitWords), kNttThreads, kRowSharedBytes, second_traces, args);
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
}

TEST(CudaSecondLevelKernels, ProductsByDefinition) {
  SeededRandom random(542);
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
    for (const Schedule& schedule : kSchedules) {
      const SecondLevelProblem problem(random, sizes);
      launch_with(schedule, dim3((sizes.columns + 31) / 32, sizes.queries), kProductThreads,
                  kProductSharedBytes, second_products, problem.args());
      for (uint32_t i = 0; i < sizes.queries * sizes.columns; ++i) {
        ASSERT_EQ(problem.products()[i], problem.product(i / sizes.columns, i % sizes.columns))
            << i;
      }
    }
  }
}

TEST(CudaSecondLevelKernels, ChainsSwitchAsTheHostDoes) {
  SeededRandom random(543);
  for (const Schedule& schedule : kSchedules) {
    // Masks and words of odd numbers of bits, and of all.
    for (const uint32_t bits : {17u, 32u}) {
      const SecondLevelProblem problem(random, {.queries = 2,
                                                .rows = 3,
                                                .columns = 7,
                                                .words = 21,
                                                .key_order = 8,
                                                .mask_bits = bits,
                                                .response_bits = bits});
      launch_with(schedule, dim3(1, 2), kNttThreads, kKeySwitchSharedBytes, second_chains,
                  problem.args());
      for (uint32_t query = 0; query < 2; ++query) {
        EXPECT_TRUE(
            std::ranges::equal(problem.found_response(query), problem.expected_response(query)))
            << "query " << query << ", " << bits << " bits";
      }
    }
  }
}

}  // namespace
}  // namespace blindfuse
