// The kernels of the second level of packed responses, and small problems for them.
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "src/arithmetic/ring/ntt.h"
#include "tests/cuda/races/device_side.h"
#include "tests/cuda/races/mutation.h"
#include "tests/cuda/races/ranges.h"
#include "tests/cuda/second_level_problem.h"
#include "tests/support.h"

#include "cuda/packing/kernels/second_chains.cuh"
#include "cuda/packing/kernels/second_products.cuh"
#include "cuda/packing/kernels/second_traces.cuh"

namespace blindfuse::races {
namespace {

using emulator::SecondLevelProblem;
using emulator::SecondLevelSizes;
using ring::kDimension;
using ring::kOrbit;
using support::SeededRandom;

constexpr const char* kOwnPlaces = "each thread reads what it wrote itself";

// Rows of two blocks, of which the last one is not full.
constexpr SecondLevelSizes kSizes{.queries = 2,
                                  .rows = kDimension + 20,
                                  .columns = 3,
                                  .words = 3 * (kDimension + 20) - 2,
                                  .key_order = 4};

template <typename Kernel>
Report run_kernel(const Options& options, const SecondLevelProblem& problem, dim3 grid,
                  uint32_t threads, uint32_t shared_bytes, Kernel kernel) {
  Ranges ranges;
  ranges.with(problem);
  return run(options, ranges, grid, threads, shared_bytes, kernel, problem.args());
}

Subject column_values() {
  return {"second_column_values",
          [](const Options& options, bool* is_right) {
            SeededRandom random(630);
            static const SecondLevelProblem problem(random, kSizes);
            Report report = run_kernel(options, problem, dim3(3, 2), kNttThreads, kRowSharedBytes,
                                       second_column_values);
            if (is_right == nullptr) return report;
            *is_right = true;
            for (uint32_t at = 0; at < 6; ++at) {
              const auto expected = problem.hint(at / 3, at % 3);
              *is_right &=
                  std::equal(expected.begin(), expected.end(),
                             problem.squares().data() + uint64_t{at / 3} * kPackSquareWords +
                                 at % 3 * kRingWords);
            }
            return report;
          },
          {{"ntt.cuh", "ntt_forward", Step::kBlockBarrier, 1, kOwnPlaces}}};
}

// The rows of two points.
Subject traces() {
  return {"second_traces",
          [](const Options& options, bool* is_right) {
            constexpr uint32_t kPoints = 2;
            SeededRandom random(631);
            const SecondLevelProblem problem(random, kSizes);
            const uint32_t* squares = problem.squares().data();
            const std::vector<uint32_t> before(squares, squares + kPoints * kRingWords);
            Report report = run_kernel(options, problem, dim3(kPoints), kNttThreads,
                                       kRowSharedBytes, second_traces);
            if (is_right == nullptr) return report;
            *is_right = true;
            const ring::PrimeField field(ring::kPackingModulus);
            const auto ntt = ring::portable_ntt(ring::kPackingModulus);
            for (uint32_t at = 0; at < 2 * kPoints; ++at) {
              // Of the columns' coefficients, at the points of the same half.
              std::array<uint32_t, kDimension> values{};
              for (uint32_t c = 0; c < kSizes.columns; ++c) {
                values[c] = field.multiply(before[at * kOrbit + c], field.inverse(4));
              }
              ntt->forward(values);
              *is_right &=
                  std::equal(values.begin() + at % 2 * kOrbit,
                             values.begin() + (at % 2 + 1) * kOrbit, squares + at * kOrbit);
            }
            return report;
          },
          {{"ntt.cuh", "ntt_forward", Step::kBlockBarrier, 1, kOwnPlaces}}};
}

Subject products() {
  return {"second_products",
          [](const Options& options, bool* is_right) {
            SeededRandom random(632);
            static const SecondLevelProblem problem(
                random, {.queries = 2, .rows = 30, .columns = 40, .words = 1'190, .key_order = 64});
            Report report = run_kernel(options, problem, dim3(2, 2), kProductThreads,
                                       kProductSharedBytes, second_products);
            if (is_right == nullptr) return report;
            *is_right = true;
            for (uint32_t i = 0; i < 80; ++i) {
              *is_right &= problem.products()[i] == problem.product(i / 40, i % 40);
            }
            return report;
          },
          {}};
}

// Three switches, of any traces.
Subject chains() {
  return {"second_chains",
          [](const Options& options, bool* is_right) {
            SeededRandom random(633);
            static const SecondLevelProblem problem(random, kSizes);
            Report report = run_kernel(options, problem, dim3(1, 2), kNttThreads,
                                       kKeySwitchSharedBytes, second_chains);
            if (is_right == nullptr) return report;
            *is_right = true;
            for (uint32_t query = 0; query < 2; ++query) {
              *is_right &= std::ranges::equal(problem.found_response(query),
                                              problem.expected_response(query));
            }
            return report;
          },
          {{"ntt.cuh", "ntt_forward", Step::kBlockBarrier, 1, kOwnPlaces},
           {"ntt.cuh", "ntt_inverse", Step::kBlockBarrier, 6, kOwnPlaces}}};
}

}  // namespace

const std::vector<Subject>& second_level_subjects() {
  static const std::vector<Subject> all = {column_values(), traces(), products(), chains()};
  return all;
}

}  // namespace blindfuse::races
