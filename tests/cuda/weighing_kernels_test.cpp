// The kernels that products are checked with, run by the emulator.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "tests/cuda/emulator.h"
#include "tests/cuda/kernel_support.h"
#include "tests/support.h"

#include "cuda/scan/kernels/weigh_columns.cuh"
#include "cuda/scan/kernels/weigh_products.cuh"

namespace blindfuse {
namespace {

using emulator::blocks_for;
using emulator::launch;
using emulator::Memory;
using support::SeededRandom;

TEST(CudaWeighing, MultipliesTheMatrixWithWeights) {
  SeededRandom random(520);
  for (const auto& [steps, columns] : {std::pair<uint64_t, uint32_t>{1, 1},
                                       {1, 7},
                                       {17, 8},
                                       {2, 255},
                                       {1, 256},
                                       {3, 257},
                                       {1, 520}}) {
    const uint64_t pitch = steps * kStepRows;
    const Memory<int8_t> bytes(pitch * columns);
    for (int8_t& byte : bytes) byte = static_cast<int8_t>(random.byte());
    const Memory<uint32_t> weights(columns), vector(pitch);
    for (uint32_t& weight : weights) weight = random.u32();
    std::ranges::fill(vector, 5u);
    launch(dim3(blocks_for(columns, kWeighedColumns),
                blocks_for(pitch / kRowsPerThread, kWeighColumnsThreads)),
           kWeighColumnsThreads, 0, weigh_columns,
           WeighColumnsArgs{bytes.data(), pitch, columns, weights.data(), vector.data()});
    for (uint64_t r = 0; r < pitch; ++r) {
      int64_t sum = 5;  // modulo 2^32
      for (uint64_t c = 0; c < columns; ++c) {
        sum += int64_t{weights[c]} * bytes[c * pitch + r];
      }
      ASSERT_EQ(vector[r], static_cast<uint32_t>(sum)) << columns << " columns, row " << r;
    }
  }
}

class CudaWeighingOfProducts : public ::testing::Test {
 protected:
  // A word of each query after its products, which is not one of them.
  static constexpr uint32_t kQueries = 3, kColumns = 9'001;
  static constexpr uint64_t kPitch = kColumns + 1;
  static constexpr uint32_t kCutWarps = 19;

  CudaWeighingOfProducts() {
    for (uint32_t& product : products_) product = random_.u32();
    for (uint32_t& weight : weights_) weight = random_.u32() | 1;
    for (uint32_t& sum : sums_) sum = random_.u32();
  }

  void weigh(uint32_t columns) {
    std::ranges::fill(differences_, 7u);
    launch(kQueries, kWeighProductsThreads, kWeighProductsSharedBytes, weigh_products,
           WeighProductsArgs{products_.data(), kPitch, columns, weights_.data(), sums_.data(),
                             kCutWarps, differences_.data()});
  }

  SeededRandom random_{521};
  const Memory<uint32_t> products_{kQueries * kPitch}, weights_{kColumns}, sums_{kQueries},
      differences_{kQueries};
};

TEST_F(CudaWeighingOfProducts, IsTheSumLessThatOfTheQuery) {
  for (const uint32_t columns : {1u, 31u, 33u, 511u, 512u, 513u, 4'096u, 4'097u, kColumns}) {
    weigh(columns);
    for (uint32_t q = 0; q < kQueries; ++q) {
      uint64_t sum = 0;  // modulo 2^32
      for (uint64_t c = 0; c < columns; ++c) {
        sum += uint64_t{products_[q * kPitch + c]} * weights_[c];
      }
      ASSERT_EQ(differences_[q], static_cast<uint32_t>(sum - sums_[q] + kCutWarps))
          << columns << " columns, query " << q;
    }
  }
}

// Each bit of one word; and what is said not to be found.
TEST_F(CudaWeighingOfProducts, FindsEveryBitOfOneWrongWord) {
  std::ranges::fill(sums_, 0u);
  weigh(kColumns);
  for (uint32_t q = 0; q < kQueries; ++q) sums_[q] = differences_[q];  // with the warps
  for (uint32_t bit = 0; bit < 32; ++bit) {
    const uint64_t at = kPitch + random_.below(kColumns);
    products_[at] ^= uint32_t{1} << bit;
    weigh(kColumns);
    EXPECT_EQ(differences_[0], 0u);
    EXPECT_NE(differences_[1], 0u) << "bit " << bit;
    EXPECT_EQ(differences_[2], 0u);
    products_[at] ^= uint32_t{1} << bit;
  }
  products_[0] ^= 0x80000000;
  products_[kColumns - 1] ^= 0x80000000;
  weigh(kColumns);
  EXPECT_EQ(differences_[0], 0u) << "two highest bits";
}

}  // namespace
}  // namespace blindfuse
