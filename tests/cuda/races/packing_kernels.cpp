// The kernels that pack responses, and small problems for them.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/arithmetic/ring/modulus_switch.h"
#include "src/arithmetic/ring/ntt.h"
#include "tests/cuda/device_memory.h"
#include "tests/cuda/host_ring.h"
#include "tests/cuda/races/device_side.h"
#include "tests/cuda/races/mutation.h"
#include "tests/cuda/races/ranges.h"
#include "tests/cuda/sum_problem.h"
#include "tests/support.h"

#include "cuda/packing/kernels/cut_keys.cuh"
#include "cuda/packing/kernels/cut_table.cuh"
#include "cuda/packing/kernels/finish_packs.cuh"
#include "cuda/packing/kernels/point_sums.cuh"
#include "cuda/scan/kernels/scan_dp4a.cuh"
#include "cuda/scan/kernels/scan_mma.cuh"
#include "cuda/scan/kernels/scan_wgmma.cuh"

namespace blindfuse::races {
namespace {

using emulator::HostRing;
using emulator::limb_place;
using emulator::Memory;
using emulator::signed_limb;
using emulator::SumProblem;
using support::SeededRandom;

Subject keys() {
  return {
      "cut_keys",
      [](const Options& options, bool* is_right) {
        constexpr uint32_t kQueries = 2;
        constexpr uint64_t kHalfBytes = 16 * 3072;
        SeededRandom random(610);
        const Memory<uint32_t> words(kQueries * ring::kKeyWords);
        for (uint32_t& word : words) word = random.u32();
        const Memory<int8_t> limbs(2 * kHalfBytes);
        const Ranges ranges(words, limbs);
        Report report;
        if (is_right != nullptr) *is_right = true;
        for (const LimbOrder order : {LimbOrder::kRows, LimbOrder::kMma, LimbOrder::kWgmma}) {
          Report of_order = run(options, ranges, dim3(2, kQueries), kCutKeysThreads, 0, cut_keys,
                                CutKeysArgs{words.data(), ring::kKeyWords,
                                            Limbs{limbs.data(), 3072, order}, kHalfBytes});
          report.races.insert(report.races.end(), of_order.races.begin(), of_order.races.end());
          if (is_right == nullptr) continue;
          for (uint32_t at = 0; at < kQueries * ring::kKeyWords; ++at) {
            const uint32_t q = at / ring::kKeyWords, digit = at / 2048 % 3, half = at / 1024 % 2;
            for (uint32_t l = 0; l < 4; ++l) {
              *is_right &= limbs[half * kHalfBytes +
                                 limb_place(order, 3072, q, l, digit * 1024 + at % 1024)] ==
                           signed_limb(words[at], l);
            }
          }
        }
        return report;
      },
      {}};
}

// Two groups of points of one pack.
Subject table() {
  return {
      "cut_table",
      [](const Options& options, bool* is_right) {
        SeededRandom random(611);
        const Memory<uint32_t> words(2 * kGroupWords);
        for (uint32_t& word : words) word = random.u32();
        const Memory<int8_t> columns(32 * 4 * 3072);  // of 32 points
        const Ranges ranges(words, columns);
        Report report = run(options, ranges, dim3(kSumRows / kCutTableRows, 2), kCutTableThreads, 0,
                            cut_table, CutTableArgs{words.data(), 0, 0, 1, columns.data()});
        if (is_right == nullptr) return report;
        *is_right = true;
        for (uint32_t at = 0; at < 32 * 3 * 1023; ++at) {
          const uint32_t power = at % 1023, digit = at / 1023 % 3, point = at / 1023 / 3;
          const uint32_t word = words[table_place(point / 16, 1022 - power, digit) + point % 16];
          for (uint32_t l = 0; l < 4; ++l) {
            *is_right &= columns[(point * 4 + l) * 3072 + digit * 1024 + (point + power) % 1024] ==
                         signed_limb(word, l);
          }
        }
        return report;
      },
      {}};
}

// The epilogue of the sums, at the end of kernels that scan_kernels.cpp has with all their tiles.
template <typename Kernel, typename... Args>
Subject sums(const char* kernel_name, LimbOrder order, uint32_t queries, dim3 grid,
             uint32_t threads, uint32_t shared_bytes, std::vector<Redundant> redundant,
             Kernel kernel, Args... args_behind) {
  SeededRandom random(612);
  const auto problem = std::make_shared<const SumProblem>(random, order, queries);
  return {std::string(kernel_name) + "<sums>",
          [=](const Options& options, bool* is_right) {
            problem->forget_sums();
            Ranges ranges;
            ranges.with(*problem);
            Report report = run(options, ranges, grid, threads, shared_bytes, kernel,
                                problem->args(), args_behind...);
            if (is_right != nullptr) *is_right = problem->trouble().empty();
            return report;
          },
          std::move(redundant)};
}

constexpr const char* kNothingLeft =
    "all groups with something in them were waited for in a step; the last ones are empty";

Subject few_sums() {
  return sums("scan_dp4a", LimbOrder::kRows, 1, dim3(4, 1), 192, 0, {}, scan_dp4a<1, PointSums>, 0u,
              64u);
}
Subject mma_sums() {
  return sums("scan_mma", LimbOrder::kMma, 5, dim3(2, 2), kMmaThreads, limb_shared_bytes<16, 4>(),
              {{"scan_mma.cuh", "scan_mma", Step::kCopyWait, 2, kNothingLeft}},
              scan_mma<16, 4, PointSums>);
}
Subject wgmma_sums() {
  return sums("scan_wgmma", LimbOrder::kWgmma, 9, dim3(2, 2), kWgmmaThreads,
              limb_shared_bytes<32, 4>(),
              {{"scan_wgmma.cuh", "scan_wgmma", Step::kCopyWait, 2, kNothingLeft}},
              scan_wgmma<32, 4, PointSums>);
}

Subject finish() {
  return {"finish_packs",
          [](const Options& options, bool* is_right) {
            constexpr uint32_t kPacks = 2, kQueries = 2, kBits = 16, kColumns = kPacks * 1024;
            constexpr uint64_t kPitch = kPacks * 32 * kBits;
            SeededRandom random(613);
            const HostRing ring;
            const Memory<uint64_t> sums(kQueries * kPacks * 2048);
            const Memory<uint32_t> products(kQueries * kColumns), responses(kQueries * kPitch);
            for (uint64_t& sum : sums) sum = random.below(ring::kPackingModulus);
            for (uint32_t& word : products) word = random.u32();
            Ranges ranges(sums, products, responses);
            ranges.with(ring);
            Report report = run(options, ranges, dim3(kPacks, kQueries), kNttThreads,
                                kFinishSharedBytes, finish_packs,
                                FinishArgs{ring.view(), sums.data(), products.data(), kColumns,
                                           kColumns, kPacks, kBits, responses.data(), kPitch});
            if (is_right == nullptr) return report;
            *is_right = true;
            const ring::PrimeField field(ring::kPackingModulus);
            const auto ntt = ring::portable_ntt(ring::kPackingModulus);
            for (uint32_t at = 0; at < kQueries * kPacks; ++at) {
              const uint32_t q = at / kPacks, pack = at % kPacks;
              std::vector<uint32_t> body(2048);
              for (uint32_t point = 0; point < 2048; ++point) {
                const uint32_t half = q * 2 + point / 1024;
                body[point] =
                    static_cast<uint32_t>(sums[(half * kPacks + pack) * 1024 + point % 1024]);
              }
              ntt->inverse(ring::MutablePolynomial(body.data(), 2048));
              for (uint32_t c = 0; c < 1024; ++c) {
                const uint32_t product = products[q * kColumns + pack * 1024 + c];
                const uint32_t word =
                    ring::switch_from_q(field.subtract(ring::switch_to_q(product), body[c]), kBits);
                const uint32_t found = responses[q * kPitch + pack * 32 * kBits + c / 2];
                *is_right &= (found >> c % 2 * 16 & 0xffff) == word;
              }
            }
            return report;
          },
          {{"ntt.cuh", "ntt_inverse", Step::kBlockBarrier, 6,
            "each thread reads what it wrote itself"}}};
}

}  // namespace

const std::vector<Subject>& packing_subjects() {
  static const std::vector<Subject> all = {keys(),     table(),      few_sums(),
                                           mma_sums(), wgmma_sums(), finish()};
  return all;
}

}  // namespace blindfuse::races
