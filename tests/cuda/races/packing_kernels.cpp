// The kernels that pack responses, and small problems for them.
#include <cstdint>
#include <memory>
#include <string>
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
#include "cuda/packing/kernels/sum_points.cuh"

namespace blindfuse::races {
namespace {

using emulator::HostRing;
using emulator::Memory;
using emulator::plane_byte;
using emulator::SumProblem;
using emulator::table_byte;
using support::SeededRandom;

Subject keys() {
  return {"cut_keys",
          [](const Options& options, bool* is_right) {
            constexpr uint32_t kQueries = 2;
            SeededRandom random(610);
            const Memory<uint32_t> words(kQueries * ring::kKeyWords);
            for (uint32_t& word : words) word = random.u32();
            const Memory<uint8_t> planes(uint64_t{kQueries} * kQueryPlaneBytes);
            const Ranges ranges(words, planes);
            Report report = run(options, ranges, dim3(6, kQueries), kCutKeysThreads, 0, cut_keys,
                                CutKeysArgs{words.data(), ring::kKeyWords, planes.data()});
            if (is_right == nullptr) return report;
            *is_right = true;
            for (uint32_t at = 0; at < kQueries * 6 * 4 * kPlaneBytes; ++at) {
              const uint32_t i = at % kPlaneBytes, copy = at / kPlaneBytes % 4,
                             row = at / kPlaneBytes / 4 % 6, q = at / kPlaneBytes / 24;
              const uint32_t word = words[q * ring::kKeyWords + row * 1024 + (i + copy) % 1024];
              for (uint32_t l = 0; l < 4; ++l) {
                *is_right &= planes[plane_byte(q, row / 2, row % 2, l, copy, i)] ==
                             static_cast<uint8_t>(word >> 8 * l);
              }
            }
            return report;
          },
          {}};
}

// Two groups of points of one pack.
Subject table() {
  return {"cut_table",
          [](const Options& options, bool* is_right) {
            constexpr uint32_t kPack = 3, kPacks = 5;
            SeededRandom random(611);
            const Memory<uint32_t> words(2 * kGroupWords);
            for (uint32_t& word : words) word = random.u32();
            const Memory<uint8_t> tables(32 * kTileBytes);
            const Ranges ranges(words, tables);
            Report report =
                run(options, ranges, dim3(kSumSteps / kStepsInBlock, 2), kCutTableThreads, 0,
                    cut_table, CutTableArgs{words.data(), 0, kPack, kPacks, tables.data()});
            if (is_right == nullptr) return report;
            *is_right = true;
            for (uint32_t at = 0; at < 32 * 3 * 1023; ++at) {
              const uint32_t power = at % 1023, digit = at / 1023 % 3, point = at / 1023 / 3;
              const uint32_t word =
                  words[table_place(point / 16, 1022 - power, digit) + point % 16];
              for (uint32_t l = 0; l < 4; ++l) {
                *is_right &= tables[point * kTileBytes + table_byte(kPack, digit, power, l)] ==
                             static_cast<uint8_t>(word >> 8 * l);
              }
            }
            return report;
          },
          {}};
}

template <uint32_t kQueryTiles, uint32_t kPackTiles>
Subject sums() {
  // Two blocks, for neighbouring sets of points.
  constexpr uint32_t kFirstSet = 126, kSets = 2;
  SeededRandom random(612);
  const auto problem = std::make_shared<const SumProblem>(random, kQueryTiles * 16 - 14,
                                                          kPackTiles * 8 - 6, kFirstSet, kSets);
  return {"sum_points<" + std::to_string(kQueryTiles) + ", " + std::to_string(kPackTiles) + '>',
          [problem](const Options& options, bool* is_right) {
            problem->forget_sums();
            Ranges ranges;
            ranges.with(*problem);
            Report report = run(options, ranges, dim3(1, 1, kSets), kSumThreads,
                                sum_shared_bytes<kQueryTiles, kPackTiles>(),
                                sum_points<kQueryTiles, kPackTiles>, problem->args());
            if (is_right != nullptr) *is_right = problem->trouble().empty();
            return report;
          },
          {}};
}

Subject finish() {
  return {"finish_packs",
          [](const Options& options, bool* is_right) {
            constexpr uint32_t kPacks = 2, kQueries = 2, kBits = 16, kColumns = kPacks * 1024;
            constexpr uint64_t kPitch = kPacks * 32 * kBits;
            SeededRandom random(613);
            const HostRing ring;
            const Memory<uint32_t> sums(kQueries * kPacks * 2048), products(kQueries * kColumns),
                responses(kQueries * kPitch);
            for (const auto* memory : {&sums, &products}) {
              for (uint32_t& word : *memory) {
                word = static_cast<uint32_t>(random.below(ring::kPackingModulus));
              }
            }
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
              std::vector<uint32_t> body(sums.data() + at * 2048, sums.data() + (at + 1) * 2048);
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
  static const std::vector<Subject> all = {keys(),       table(),      sums<1, 1>(), sums<1, 2>(),
                                           sums<2, 1>(), sums<2, 2>(), finish()};
  return all;
}

}  // namespace blindfuse::races
