// Query words cut into limbs by the CUDA kernels, run by the emulator: every order, every width of
// what crosses the network.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "src/arithmetic/bit_sequence.h"
#include "tests/cuda/emulator.h"
#include "tests/cuda/kernel_support.h"
#include "tests/support.h"

#include "cuda/scan/kernels/cut_words.cuh"

namespace blindfuse {
namespace {

using emulator::blocks_for;
using emulator::launch;
using emulator::Memory;
using support::SeededRandom;

TEST(CudaLimbs, LimbsAddUpToTheirWords) {
  SeededRandom random(501);
  for (const auto& [rows, lead] : {std::pair<uint64_t, uint32_t>{1, 0}, {127, 1}, {300, 100}}) {
    constexpr uint32_t kQueries = 7;
    const std::vector<uint32_t> words = random.words(rows * kQueries);
    const uint64_t pitch = uint64_t{blocks_for(lead + rows, kStepRows)} * kStepRows;
    const Memory<int8_t> limbs(pitch * 32);
    launch(dim3(blocks_for(pitch / kRowsPerThread, 32), kQueries), 32, 0, cut_plain_words,
           PlainWords{words.data(), rows, 64, rows, lead}, Limbs{limbs.data(), pitch});
    for (uint32_t q = 0; q < kQueries; ++q) {
      for (uint64_t at = 0; at < pitch; ++at) {
        uint32_t sum = 0;
        for (uint32_t l = 0; l < 4; ++l) {
          sum += static_cast<uint32_t>(int32_t{limbs[limb_row(q, l) * pitch + at]}) << (8 * l);
        }
        const bool counts = at >= lead && at < lead + rows;
        ASSERT_EQ(sum, counts ? words[q * rows + at - lead] : 0u) << q << ' ' << at;
      }
    }
  }
}

// PTX ISA, "Matrix fragments for mma.m16n8k32" of 8-bit integers, in its words: of A, row =
// groupID for ai where 0 <= i < 4 || 8 <= i < 12, groupID + 8 otherwise; col = threadID_in_group *
// 4
// + (i & 0x3) for ai where i < 8, + 16 for i >= 8. What the product calls its columns are rows of a
// half step that the matrix has in the same places of B, b of 8 bytes a lane: row =
// threadID_in_group * 4 + (i & 0x3), + 16 for i >= 4. A lane takes b from its 16 rows, 8 at a time.
TEST(CudaLimbs, CutsFragmentsOfMma) {
  SeededRandom random(513);
  constexpr uint32_t kQueries = 7, kLead = 37;
  constexpr uint64_t kRows = 300, kPitch = 384;
  const std::vector<uint32_t> words = random.words(kRows * kQueries);
  const Memory<int8_t> rows(kPitch * 32), fragments(kPitch * 32);
  const PlainWords from{words.data(), kRows, 64, kRows, kLead};
  const dim3 grid(blocks_for(kPitch / kRowsPerThread, 32), kQueries);
  launch(grid, 32, 0, cut_plain_words, from, Limbs{rows.data(), kPitch});
  launch(grid, 32, 0, cut_plain_words, from, Limbs{fragments.data(), kPitch, LimbOrder::kMma});
  const int8_t* next = fragments.data();
  for (uint32_t four = 0; four < 2; ++four) {
    for (uint64_t half_step = 0; half_step < kPitch; half_step += 64) {
      for (uint32_t product = 0; product < 2; ++product) {
        for (uint32_t lane = 0; lane < 32; ++lane) {
          const uint32_t group_id = lane >> 2, thread_in_group = lane % 4;
          for (uint32_t i = 0; i < 16; ++i) {
            const uint32_t row = i < 4 || (8 <= i && i < 12) ? group_id : group_id + 8;
            const uint32_t column = thread_in_group * 4 + (i & 3) + (i < 8 ? 0 : 16);
            // The lane whose b has this row, and the byte of its 16 that it takes.
            const uint32_t its_thread = column % 16 / 4;
            const uint32_t b = column % 4 + (column < 16 ? 0 : 4);
            const uint64_t matrix_row = half_step + 16 * its_thread + 8 * product + b;
            const uint32_t q = four * 4 + row % 8 / 2;
            if (q < kQueries) {
              ASSERT_EQ(*next, rows[(four * 16 + row) * kPitch + matrix_row])
                  << "four " << four << ", half step " << half_step << ", product " << product
                  << ", lane " << lane << ", a" << i;
            }
            ++next;
          }
        }
      }
    }
  }
}

TEST(CudaLimbs, EveryLimbHasARowOfItsOwn) {
  std::vector<uint32_t> rows;
  for (uint32_t q = 0; q < 64; ++q) {
    for (uint32_t l = 0; l < 4; ++l) rows.push_back(limb_row(q, l));
  }
  std::ranges::sort(rows);
  for (uint32_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i], i);
}

// The public matrix comes in panels: 64 words of the first vector, 64 of the second, and so on.
TEST(CudaLimbs, CutsWordsInPanels) {
  SeededRandom random(502);
  constexpr uint32_t kQueries = 5;
  constexpr uint64_t kRows = 192;
  const std::vector<uint32_t> panels = random.words(kRows * kQueries);
  const Memory<int8_t> limbs(256 * 32);
  launch(dim3(1, kQueries), 32, 0, cut_plain_words,
         PlainWords{panels.data(), 64, 64 * kQueries, kRows, 64}, Limbs{limbs.data(), 256});
  for (uint32_t q = 0; q < kQueries; ++q) {
    for (uint64_t r = 0; r < kRows; ++r) {
      uint32_t sum = 0;
      for (uint32_t l = 0; l < 4; ++l) {
        sum += static_cast<uint32_t>(int32_t{limbs[limb_row(q, l) * 256 + 64 + r]}) << (8 * l);
      }
      ASSERT_EQ(sum, panels[(r / 64 * kQueries + q) * 64 + r % 64]);
    }
  }
}

// And adds them up, weighted, where that is asked for.
TEST(CudaLimbs, CutsPackedWordsOfEveryWidth) {
  SeededRandom random(503);
  constexpr uint32_t kQueries = 3;
  for (uint32_t bits = 1; bits <= 32; ++bits) {
    const uint64_t rows = 64 * random.between(1, 5);
    const uint64_t words_each = bit_sequence_bytes(rows, bits) / 4 + 1;
    const Memory<uint32_t> packed(kQueries * words_each);
    for (uint32_t& word : packed) word = random.u32();
    const uint64_t pitch = uint64_t{blocks_for(rows, kStepRows)} * kStepRows;
    const Memory<int8_t> limbs(pitch * 16);
    const Memory<uint32_t> weights(pitch), sums(kQueries);
    for (uint32_t& weight : weights) weight = random.u32();
    std::ranges::fill(sums, bits);
    const bool is_checked = bits % 4 != 3;
    launch(dim3(blocks_for(pitch / kRowsPerThread, 32), kQueries), 32, 0, cut_bit_sequences,
           BitSequences{packed.data(), words_each, bits, rows}, Limbs{limbs.data(), pitch},
           is_checked ? QuerySums{weights.data(), sums.data()} : QuerySums{});
    for (uint32_t q = 0; q < kQueries; ++q) {
      uint64_t weighted = bits + (is_checked ? blocks_for(pitch / kRowsPerThread, 32) : 0);
      for (uint64_t r = 0; r < pitch; ++r) {
        uint32_t sum = 0;
        for (uint32_t l = 0; l < 4; ++l) {
          sum += static_cast<uint32_t>(int32_t{limbs[limb_row(q, l) * pitch + r]}) << (8 * l);
        }
        uint32_t word = 0;  // bit by bit
        for (uint32_t b = 0; b < bits && r < rows; ++b) {
          const uint64_t at = r * bits + b;
          word |= (packed[q * words_each + at / 32] >> at % 32 & 1) << (32 - bits + b);
        }
        ASSERT_EQ(sum, word) << bits << " bits, query " << q << ", row " << r;
        if (is_checked) weighted += uint64_t{word} * weights[r];
      }
      ASSERT_EQ(sums[q], static_cast<uint32_t>(weighted)) << bits << " bits, query " << q;
    }
  }
}

}  // namespace
}  // namespace blindfuse
