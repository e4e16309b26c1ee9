// What the tensor cores compute, by the PTX ISA's figures of how matrices lie in registers and in
// shared memory. Of a warp's 32 lanes, lane = 4 g + t with g < 8 and t < 4.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace blindfuse::emulator {

// mma.sync.m16n8k32 of signed bytes: "Matrix Fragments for mma.m16n8k32". Modulo 2^32.
struct WarpProduct {
  std::array<int32_t*, 32> sums;      // four each
  std::array<const uint32_t*, 32> a;  // four each
  std::array<const uint32_t*, 32> b;  // two each

  void compute() const;
};

// Of one row of wgmma's second operand of 8-bit numbers: two pieces of 16 bytes, which the swizzle
// may tear apart.
inline constexpr size_t kOperandBytes = 16;

// "Matrix Descriptor Format" of wgmma, for 128-byte swizzle, K-major: where the 2 `rows` pieces of
// a matrix of `rows` rows of 32 bytes lie in shared memory, row after row. The window begins with
// `window` bytes of others'. Nothing for other descriptors.
std::vector<uint32_t> described_rows(uint64_t descriptor, uint32_t rows, uint32_t window);

// Rows of wgmma's first operand.
inline constexpr uint32_t kGroupRows = 64;

// A warp's part of wgmma.m64nNk32.s8.s8 with a in registers, or in shared memory: "Register
// Fragments for wgmma.mma_async.m64nNk32". Modulo 2^32. The text does not say which warp reads
// which rows of a from shared memory: it is taken that each reads all.
struct GroupProduct {
  uint32_t columns = 0;             // N
  uint32_t warp = 0;                // of the four
  std::vector<uint32_t> matrix;     // described_rows() of a, if it is in shared memory
  std::vector<uint32_t> operand;    // described_rows()
  std::array<int32_t*, 32> sums{};  // columns / 2 each
  std::array<std::array<uint32_t, 4>, 32> a{};

  void compute(const uint8_t* shared) const;
  // f(place) of all that it reads from shared memory.
  template <class F>
  void for_places(const F& f) const {
    for (const uint32_t place : operand) f(place);
    for (const uint32_t place : matrix) f(place);
  }
};

}  // namespace blindfuse::emulator
