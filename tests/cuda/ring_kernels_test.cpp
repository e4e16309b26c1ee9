// The CUDA kernels of packed responses, run by the emulator, against the host's code.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "src/arithmetic/ring/ntt.h"
#include "tests/cuda/emulator.h"
#include "tests/cuda/host_ring.h"
#include "tests/cuda/kernel_support.h"
#include "tests/support.h"

#include "cuda/packing/kernels/ntt.cuh"

namespace blindfuse {
namespace {

using emulator::HostRing;
using emulator::launch;
using emulator::Memory;
using ring::kDimension;
using ring::kPackingModulus;
using support::SeededRandom;

enum class Way { kForward, kHalves, kInverse, kForwardTwice, kThereAndBack };

// One block for each polynomial.
void transform(NttView ring, Way way, uint32_t* polynomials) {
  auto* const shared = reinterpret_cast<uint32_t*>(dynamic_shared_memory());
  uint32_t* const words = polynomials + blockIdx.x * kDimension;
  for (uint32_t i = threadIdx.x; i < kDimension; i += kNttThreads) shared[i] = words[i];
  if (way == Way::kHalves) ntt_forward<NttOf::kHalves>(ring, shared);
  if (way != Way::kHalves && way != Way::kInverse) ntt_forward(ring, shared);
  if (way == Way::kForwardTwice) ntt_forward(ring, shared);
  if (way == Way::kInverse || way == Way::kThereAndBack) ntt_inverse(ring, shared);
  // Somebody else's.
  for (uint32_t i = threadIdx.x; i < kDimension; i += kNttThreads) {
    words[kDimension - 1 - i] = shared[kDimension - 1 - i];
  }
}

std::vector<uint32_t> transformed(const std::vector<uint32_t>& words, Way way) {
  const HostRing ring;
  const Memory<uint32_t> memory(words);
  launch(dim3(static_cast<unsigned>(words.size() / kDimension)), kNttThreads, 4 * kDimension,
         transform, ring.view(), way, memory.data());
  return {memory.begin(), memory.end()};
}

// Polynomials with the values that tell wrong reductions, and with any.
std::vector<uint32_t> polynomials(SeededRandom& random) {
  std::vector<uint32_t> words;
  for (const uint32_t value : {0u, 1u, kPackingModulus - 1, kPackingModulus / 2}) {
    words.insert(words.end(), kDimension, value);
  }
  for (int i = 0; i < 2; ++i) {
    for (size_t k = 0; k < kDimension; ++k) {
      words.push_back(static_cast<uint32_t>(random.below(kPackingModulus)));
    }
  }
  for (size_t k = 0; k < kDimension; ++k) {
    words.push_back(random.byte() % 2 == 0 ? 0 : kPackingModulus - 1);
  }
  for (const size_t place : {size_t{0}, size_t{1}, kDimension - 1}) {
    words.insert(words.end(), kDimension, 0);
    words[words.size() - kDimension + place] = 1;
  }
  return words;
}

TEST(CudaRingKernels, TransformAsTheHostDoes) {
  SeededRandom random(520);
  const auto host = ring::portable_ntt(kPackingModulus);
  const std::vector<uint32_t> words = polynomials(random);
  const auto for_each = [&](std::vector<uint32_t>& all, auto&& what) {
    for (size_t at = 0; at < all.size(); at += kDimension) {
      what(ring::MutablePolynomial(all.data() + at, kDimension));
    }
  };
  std::vector<uint32_t> forward = words, twice = words, inverse = words;
  for_each(forward, [&](ring::MutablePolynomial p) { host->forward(p); });
  for_each(twice, [&](ring::MutablePolynomial p) { host->forward(p), host->forward(p); });
  for_each(inverse, [&](ring::MutablePolynomial p) { host->inverse(p); });
  EXPECT_TRUE(transformed(words, Way::kForward) == forward);
  EXPECT_TRUE(transformed(words, Way::kForwardTwice) == twice);
  EXPECT_TRUE(transformed(words, Way::kInverse) == inverse);
  EXPECT_TRUE(transformed(words, Way::kThereAndBack) == words);
}

// Each half is the coefficients of a polynomial, and becomes its values at the points of that half.
TEST(CudaRingKernels, TransformHalvesToTheirOwnPoints) {
  SeededRandom random(521);
  const auto host = ring::portable_ntt(kPackingModulus);
  const std::vector<uint32_t> words = polynomials(random);
  std::vector<uint32_t> expected(words.size());
  for (size_t at = 0; at < words.size(); at += ring::kOrbit) {
    std::vector<uint32_t> values(kDimension);
    std::copy_n(words.begin() + static_cast<std::ptrdiff_t>(at), ring::kOrbit, values.begin());
    host->forward(ring::MutablePolynomial(values.data(), kDimension));
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(at % kDimension), ring::kOrbit,
                expected.begin() + static_cast<std::ptrdiff_t>(at));
  }
  EXPECT_TRUE(transformed(words, Way::kHalves) == expected);
}

// What the last pass writes, and the first of the way back reads: one column of 32 rows.
TEST(CudaRingKernels, PointsOfAColumnLieInDifferentBanks) {
  const HostRing ring;
  for (uint32_t first_row = 0; first_row < 64; first_row += 32) {
    for (uint32_t column = 0; column < 32; ++column) {
      std::set<uint32_t> banks, swizzled_banks;
      for (uint32_t row = first_row; row < first_row + 32; ++row) {
        banks.insert(ring.view().points[row * 32 + column] % 32);
        swizzled_banks.insert(swizzled_word(row, column) % 32);
      }
      EXPECT_EQ(banks.size(), 32u);
      EXPECT_EQ(swizzled_banks.size(), 32u);
    }
  }
}

}  // namespace
}  // namespace blindfuse
