// The emulator of CUDA against plain loops over the definitions of the PTX ISA, and what it refuses
// whether or not accesses are watched (races_test.cpp has what it finds then).
#include "tests/cuda/emulator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "tests/cuda/kernel_support.h"
#include "tests/support.h"

namespace blindfuse::emulator {
namespace {

using support::SeededRandom;

constexpr unsigned kFull = 0xffffffff;

// 16-byte aligned, as global memory that is copied from has to be.
struct alignas(16) Chunk {
  uint8_t bytes[16];
};

__device__ unsigned thread_number() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}
__device__ unsigned block_number() {
  return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
}
__device__ uint32_t* shared_words() { return reinterpret_cast<uint32_t*>(dynamic_shared_memory()); }

TEST(CudaEmulator, GridsAndBlocksHaveUpToThreeDimensions) {
  constexpr dim3 kGrid(2, 3, 2), kBlock(4, 8, 5);
  std::vector<unsigned> seen(12 * 160);
  launch(kGrid, kBlock, 0, [&] {
    __syncthreads();  // the indices are still its own after another thread's turn
    EXPECT_TRUE(gridDim.x == 2 && gridDim.y == 3 && blockDim.x == 4 && blockDim.z == 5);
    EXPECT_TRUE(blockIdx.z < 2 && threadIdx.y < 8 && threadIdx.z < 5);
    ++seen.at(block_number() * 160 + thread_number());
  });
  EXPECT_EQ(seen, std::vector<unsigned>(12 * 160, 1));
}

TEST(CudaEmulator, SharedMemoryIsAlignedAndPoisonedForEveryBlock) {
  std::vector<uint32_t> bad(3);
  launch(3, 64, 256, [&] {
    if (reinterpret_cast<uintptr_t>(dynamic_shared_memory()) % 1024 != 0) bad[0] = 1;
    if (shared_words()[thread_number()] != 0xcdcdcdcd) ++bad[blockIdx.x];
    shared_words()[thread_number()] = 1;
  });
  EXPECT_EQ(bad, std::vector<uint32_t>(3));
}

TEST(CudaEmulator, CopiesTakePlaceWhenTheirGroupIsWaitedFor) {
  std::vector<Chunk> lines(2);
  std::memset(lines[0].bytes, 1, 16);
  std::memset(lines[1].bytes, 2, 16);
  // What is in the first bytes of two 16-byte places at each step.
  std::vector<std::string> steps;
  launch(1, 32, 1024, [&] {
    uint8_t* const place = dynamic_shared_memory() + threadIdx.x * 32;
    const auto look = [&] {
      if (threadIdx.x != 31) return;
      const auto letter = [](uint8_t byte) { return byte == 0xcd ? '-' : char('0' + byte); };
      steps.push_back({letter(place[0]), letter(place[16])});
    };
    copy_16_async(place, &lines[0]);
    wait_copies<0>();  // not committed: not waited for
    look();
    commit_copies();
    copy_16_async(place + 16, &lines[1]);
    commit_copies();
    commit_copies();  // a group of none
    __syncthreads();
    look();
    wait_copies<2>();
    look();
    wait_copies<1>();
    look();
    *place = 5;
    wait_copies<0>();  // each takes place once
    look();
  });
  EXPECT_EQ(steps, (std::vector<std::string>{"--", "--", "1-", "12", "52"}));
}

// One byte of A and one of B, the places worked out by hand from the PTX ISA's "Matrix fragments
// for mma.m16n8k32" (8-bit integers). Lane 4 g + t has of A row g in a0 and a2, row g + 8 in a1 and
// a3; columns 4 t .. 4 t + 3 in a0 and a1, 16 more in a2 and a3. Of B it has column g; rows 4 t ..
// 4 t + 3 in b0, 16 more in b1. Of C it has columns 2 t and 2 t + 1; row g in c0 and c1, row g + 8
// in c2 and c3. The byte e of a register is bits 8 e .. 8 e + 7.
struct HandMadeProduct {
  unsigned a_lane, a_register, a_byte;  // row and column of A
  unsigned b_lane, b_register, b_byte;  // row and column of B
  bool meet;                            // A's column is B's row
  unsigned c_lane, c_register;
};
constexpr HandMadeProduct kHandMadeProducts[] = {
    {0, 0, 0, 0, 0, 0, true, 0, 0},     // A[0][0] B[0][0] in C[0][0]
    {4, 0, 1, 8, 0, 1, true, 5, 0},     // A[1][1] B[1][2] in C[1][2]
    {5, 1, 2, 13, 0, 2, true, 5, 3},    // A[9][6] B[6][3] in C[9][3]
    {31, 3, 3, 31, 1, 3, true, 31, 3},  // A[15][31] B[31][7] in C[15][7]
    {6, 2, 0, 2, 1, 0, true, 4, 0},     // A[1][24] B[24][0] in C[1][0]
    {10, 1, 3, 30, 0, 3, true, 11, 3},  // A[10][11] B[11][7] in C[10][7]
    {17, 0, 2, 21, 0, 2, true, 18, 1},  // A[4][6] B[6][5] in C[4][5]
    {3, 3, 1, 23, 1, 1, true, 2, 3},    // A[8][29] B[29][5] in C[8][5]
    {28, 0, 3, 16, 0, 3, true, 30, 0},  // A[7][3] B[3][4] in C[7][4]
    {9, 2, 2, 9, 0, 2, false, 9, 0},    // A[2][22] B[6][2]
    {9, 0, 2, 10, 0, 2, false, 9, 0},   // A[2][6] B[10][2]
    {9, 1, 2, 9, 0, 1, false, 9, 2},    // A[10][6] B[5][2]
};

TEST(CudaEmulator, MultipliesWhatWasLaidOutByHand) {
  // -3 * 7
  for (const bool four_at_once : {true, false}) {
    for (const HandMadeProduct& product : kHandMadeProducts) {
      std::vector<int32_t> sums(32 * 4);
      launch(1, 32, 0, [&] {
        const unsigned lane = threadIdx.x;
        uint32_t a[4] = {}, b[4][2] = {};
        int32_t mine[4][4] = {};
        if (lane == product.a_lane) a[product.a_register] = 0xfdu << 8 * product.a_byte;
        if (lane == product.b_lane) b[2][product.b_register] = 7u << 8 * product.b_byte;
        four_at_once ? mma_s8_s8_four(mine, a, b) : mma_s8_s8(mine[2], a, b[2]);
        std::memcpy(&sums[4 * lane], mine[2], sizeof mine[2]);
      });
      std::vector<int32_t> expected(32 * 4);
      if (product.meet) expected[4 * product.c_lane + product.c_register] = -21;
      EXPECT_EQ(sums, expected) << "A of lane " << product.a_lane << ", B of lane "
                                << product.b_lane;
    }
  }
}

// 64 x 32 times 32 x N, b with the 128-byte swizzle: the 16-byte chunk c of row n lies at chunk
// c xor (n mod 8) of that row.
template <int kColumns>
void expect_group_product(SeededRandom& random, unsigned first_byte, bool is_a_shared) {
  // In shared memory the rows of a come after those of b.
  std::vector<int8_t> b((kColumns + 64) * 128), a;
  for (int8_t& byte : b) byte = static_cast<int8_t>(random.byte());
  for (unsigned i = 0; i < 64 * 32; ++i) {
    a.push_back(b[(kColumns + i / 32) * 128 + first_byte + i % 32]);
  }
  std::vector<uint32_t> sums = random.words(64 * kColumns);
  std::vector<uint32_t> expected = sums;
  for (unsigned row = 0; row < 64; ++row) {
    for (unsigned column = 0; column < kColumns; ++column) {
      for (unsigned k = 0; k < 32; ++k) {
        expected[row * kColumns + column] +=
            static_cast<uint32_t>(a[row * 32 + k] * b[column * 128 + first_byte + k]);
      }
    }
  }
  launch(1, 128, (kColumns + 64) * 128, [&] {
    for (unsigned i = threadIdx.x; i < b.size(); i += 128) {
      const unsigned row = i / 128, chunk = i % 128 / 16;
      dynamic_shared_memory()[row * 128 + (chunk ^ row % 8) * 16 + i % 16] =
          static_cast<uint8_t>(b[i]);
    }
    publish_shared();
    __syncthreads();
    const unsigned group = threadIdx.x % 32 / 4, in_group = threadIdx.x % 4;
    const unsigned first_row = threadIdx.x / 32 * 16;
    uint32_t words[4] = {};
    for (unsigned i = 0; i < 16; ++i) {
      const unsigned row = first_row + group + i / 4 % 2 * 8;
      const unsigned k = in_group * 4 + i % 4 + i / 8 * 16;
      words[i / 4] |= uint32_t{static_cast<uint8_t>(a[row * 32 + k])} << (i % 4 * 8);
    }
    int32_t mine[kColumns / 2];
    const auto at = [&](unsigned i) {
      const unsigned row = first_row + group + i / 2 % 2 * 8;
      return row * kColumns + i / 4 * 8 + in_group * 2 + i % 2;
    };
    for (unsigned i = 0; i < kColumns / 2; ++i) mine[i] = static_cast<int32_t>(sums[at(i)]);
    wgmma_fence();
    const uint8_t* const shared = dynamic_shared_memory() + first_byte;
    if (is_a_shared) {
      wgmma_s8_s8_shared<kColumns>(mine, operand_descriptor(shared + kColumns * 128),
                                   operand_descriptor(shared));
    } else {
      wgmma_s8_s8<kColumns>(mine, words, shared);
    }
    wgmma_commit();
    wgmma_wait();
    for (unsigned i = 0; i < kColumns / 2; ++i) sums[at(i)] = static_cast<uint32_t>(mine[i]);
  });
  EXPECT_EQ(sums, expected) << kColumns << " columns from byte " << first_byte;
}

TEST(CudaEmulator, MultipliesMatricesOfAWarpgroup) {
  SeededRandom random(7);
  for (const bool is_a_shared : {false, true}) {
    for (const unsigned first_byte : {0, 32, 64, 96}) {
      expect_group_product<32>(random, first_byte, is_a_shared);
      expect_group_product<256>(random, first_byte, is_a_shared);
    }
  }
}

TEST(CudaEmulator, RefusesProductsOfAWarpgroupThatAreWrong) {
  const auto product = [](size_t at, uint64_t changed = 0) {
    int32_t sums[16] = {};
    const uint32_t a[4] = {};
    const uint64_t descriptor = operand_descriptor(dynamic_shared_memory() + at) ^ changed;
    runtime::wgmma_start({sums, 32, &a, 0, descriptor}, {});
    wgmma_commit();
    wgmma_wait();
  };
  expect_error(
      "", [&] { product(0); }, 128, 4096);
  expect_error(
      "a product of less than four warps", [&] { product(0); }, 64, 4096);
  expect_error(
      "of other operands than another thread's", [&] { product(threadIdx.x == 9 ? 32 : 0); }, 128,
      4096);
  expect_error(
      "of other operands than another thread's", [&] { product(threadIdx.x / 32 == 2 ? 32 : 0); },
      128, 4096);
  expect_error(
      "a product of some warps of a warpgroup",
      [&] {
        if (threadIdx.x < 96) product(0);
      },
      128, 4096);
  expect_error(
      "beyond shared memory", [&] { product(0); }, 128, 4080);
  // Without the 128-byte swizzle, with a base offset, and not in the first of eight rows.
  expect_error(
      "that is not emulated", [&] { product(0, uint64_t{3} << 62); }, 128, 4096);
  expect_error(
      "that is not emulated", [&] { product(0, uint64_t{1} << 49); }, 128, 4096);
  expect_error(
      "that is not emulated", [&] { product(128); }, 128, 8192);
}

// PTX ISA, "Matrix descriptor": by hand, 0x2400 / 16 from bit 0 on, 1 from bit 16 on, 1024 / 16
// from bit 32 on, and 1 in bits 62 and 63.
TEST(CudaEmulator, DescriptorsHaveTheirFieldsInPlace) {
  EXPECT_EQ(wgmma_descriptor(0x2400), 0x4000'0040'0001'0240u);
  EXPECT_EQ(wgmma_descriptor(0x38000), 0x4000'0040'0001'3800u);
}

// PTX ISA, "wgmma.wait_group": all groups but the last N are complete.
TEST(CudaEmulator, WaitsForGroupsOfProducts) {
  std::string steps;
  launch(1, 128, 12288, [&] {
    std::memset(dynamic_shared_memory(), 1, threadIdx.x == 0 ? 12288 : 0);
    publish_shared();
    __syncthreads();
    int32_t first[16] = {}, second[16] = {};
    const uint64_t a = operand_descriptor(dynamic_shared_memory());
    size_t looks = 0;
    // The thread that comes here first.
    const auto look = [&] {
      if (steps.size() != 2 * looks++) return;
      for (const int32_t sum : {first[3], second[3]}) steps += sum == 32 ? '1' : '-';
    };
    wgmma_fence();
    wgmma_s8_s8_shared<32>(first, a, descriptor_after(a, 64 * 128));
    wgmma_commit();
    wgmma_wait<1>();
    look();
    wgmma_fence();
    wgmma_s8_s8_shared<32>(second, a, descriptor_after(a, 64 * 128));
    wgmma_commit();
    wgmma_wait<1>();
    look();
    wgmma_wait();
    look();
  });
  EXPECT_EQ(steps, "--1-11");
}

TEST(CudaEmulator, DotProductOfSignedBytes) {
  EXPECT_EQ(dot4_s8_s8(0x80, 0xff, 0), -128 * -1);
  EXPECT_EQ(dot4_s8_s8(0x7f, 0x80, 0), 127 * -128);
  EXPECT_EQ(dot4_s8_s8(0x01020304, 0x281e140a, 5), 40 + 60 + 60 + 40 + 5);
  EXPECT_EQ(dot4_s8_s8(0x80808080, 0x7f7f7f7f, INT32_MIN), INT32_MAX - 4 * 128 * 127 + 1);
  EXPECT_EQ(dot4_s8_s8(0x80000000, 0x80000000, INT32_MAX), INT32_MIN + 128 * 128 - 1);
}

TEST(CudaEmulator, BytesAndShifts) {
  launch(1, 32, 0, [] {
    EXPECT_EQ(__byte_perm(0x33221100, 0x77665544, 0x3210), 0x33221100u);
    EXPECT_EQ(__byte_perm(0x33221100, 0x77665544, 0x7654), 0x77665544u);
    EXPECT_EQ(__byte_perm(0x33221100, 0x77665544, 0xffff0527), 0x00552277u);
    EXPECT_EQ(__funnelshift_r(0x89abcdef, 0x01234567, 0), 0x89abcdefu);
    EXPECT_EQ(__funnelshift_r(0x89abcdef, 0x01234567, 8), 0x6789abcdu);
    EXPECT_EQ(__funnelshift_r(0x89abcdef, 0x01234567, 31), 0x02468acfu);
    EXPECT_EQ(__funnelshift_r(0x89abcdef, 0x01234567, 40), 0x6789abcdu);
  });
  expect_error("__byte_perm", [] { __byte_perm(1, 2, 0x8000); });
}

// Rounds follow each other at once, so that a lane that runs ahead would be seen to disturb others.
TEST(CudaEmulator, WarpsExchangeWords) {
  launch(1, 64, 0, [] {
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (unsigned round = 0; round < 40; ++round) {
      const unsigned mine = round * 1000 + threadIdx.x;
      EXPECT_EQ(__shfl_sync(kFull, mine, static_cast<int>(lane + round)),
                round * 1000 + warp * 32 + (lane + round) % 32);
      EXPECT_EQ(__shfl_xor_sync(kFull, mine, static_cast<int>(round % 32)),
                mine - lane + (lane ^ round % 32));
      EXPECT_EQ(__reduce_add_sync(kFull, mine), 32 * (round * 1000 + warp * 32) + 31 * 16);
    }
    const float half = static_cast<float>(threadIdx.x) + 0.5f;
    EXPECT_EQ(__shfl_sync(kFull, half, 3), static_cast<float>(warp * 32) + 3.5f);
  });
}

TEST(CudaEmulator, AtomicAddOverSeveralBlocks) {
  unsigned sum = 0xfffffff0;
  unsigned long long wide = 0xfffffffffffffff0;
  launch(5, 64, 0, [&] {
    atomicAdd(&sum, 3);
    atomicAdd(&wide, 0x100000001);
  });
  EXPECT_EQ(sum, 0xfffffff0 + 5 * 64 * 3);
  EXPECT_EQ(wide, 0xfffffffffffffff0 + 5 * 64 * 0x100000001);
}

TEST(CudaEmulator, RefusesWrongAddresses) {
  alignas(16) static const uint8_t global[32] = {};
  const auto copy = [](size_t to, size_t from) {
    return [=] { copy_16_async(dynamic_shared_memory() + to, global + from); };
  };
  const auto load = [](size_t from) {
    return [=] { load_shared_16(dynamic_shared_memory() + from); };
  };
  expect_error("copy_16_async at byte 8 of shared memory, which is not a multiple", copy(8, 0));
  expect_error("copy_16_async at byte 256 of shared memory, which is outside", copy(256, 0));
  expect_error("copy_16_async at byte -16 of shared memory, which is outside",
               copy(size_t(-16), 0));
  expect_error("at byte 0 of shared memory, which is outside of the block's 0", copy(0, 0), 32, 0);
  expect_error("global address that is not a multiple of 16", copy(0, 4));
  expect_error("of an address that is not a multiple of 16", [] { load_once_16(global + 8); });
  expect_error("that evict_first_policy() did not make", [] { load_once_16(global, 5); });
  expect_error("load_shared_16 at byte 241 of shared memory, which is outside", load(241));
  expect_error(
      "block (0, 0, 0), thread (1, 2, 0): load_shared_16 at byte 40",
      [&] { load(threadIdx.x == 1 && threadIdx.y == 2 ? 40 : 0)(); }, dim3(8, 4));
}

TEST(CudaEmulator, FindsThreadsThatDoNotMeet) {
  expect_error("and lane 0 of its warp in", [] {
    if (threadIdx.x < 10) __syncwarp();
    __syncthreads();
  });
  expect_error("and lane 0 of its warp in", [] {
    if (threadIdx.x == 0) __shfl_sync(kFull, 1, 1);
    if (threadIdx.x != 0) __shfl_xor_sync(kFull, 1, 1);
  });
  expect_error("31 threads wait, the first is (0, 0, 0)", [] {
    int32_t sums[4] = {};
    const uint32_t a[4] = {}, b[2] = {};
    if (threadIdx.x != 31) mma_s8_s8(sums, a, b);
  });
  expect_error(
      "32 threads wait, the first is (32, 0, 0)",
      [] {
        if (threadIdx.x >= 32) __syncthreads();
      },
      64);
  expect_error(
      "and another thread in",
      [] {
        if (threadIdx.x < 32) {
          __syncthreads();
        } else {
          __syncthreads();
        }
      },
      64);
}

TEST(CudaEmulator, FindsWhatIsNeverWaitedFor) {
  static const Chunk line{};
  const auto copies = [](bool commits, bool waits) {
    return [=] {
      copy_16_async(dynamic_shared_memory() + threadIdx.x * 16, &line);
      if (commits) commit_copies();
      if (waits) wait_copies<0>();
    };
  };
  const auto products = [](bool commits, bool waits) {
    return [=] {
      int32_t sums[16] = {};
      const uint32_t a[4] = {};
      wgmma_s8_s8<32>(sums, a, dynamic_shared_memory());
      if (commits) wgmma_commit();
      if (waits) wgmma_wait();
    };
  };
  expect_error("", copies(true, true), 32, 1024);
  expect_error("", products(true, true), 128, 4096);
  for (const bool commits : {false, true}) {
    expect_error("copies that it had not waited for", copies(commits, !commits), 32, 1024);
    expect_error("products that it had not waited for", products(commits, !commits), 128, 4096);
  }
}

// CUDA C++ Programming Guide, "Technical specifications per compute capability".
TEST(CudaEmulator, RefusesWhatItDoesNotEmulate) {
  expect_error("a mask of some lanes", [] { __syncwarp(0xffff); });
  expect_error("a mask of some lanes", [] { __reduce_add_sync(1, 1); });
  expect_error("a mask of some lanes", [] { __shfl_sync(1, 1, 1); });
  expect_error(
      "a block of 33 threads", [] {}, 33);
  expect_error(
      "a block of 0 threads", [] {}, 0);
  expect_error(
      "a block of 1056 threads", [] {}, dim3(32, 33));
  for (const dim3 grid : {dim3(1, 0), dim3(0x80000000), dim3(1, 65536), dim3(1, 1, 65536)}) {
    EXPECT_EQ(fault_of([&] { launch(grid, 32, 0, [] {}); }), "misuse");
  }
}

// An error in the middle of a launch, with threads that wait and threads that have yet to begin.
TEST(CudaEmulator, ErrorsLeaveNothingBehind) {
  for (unsigned round = 0; round < 3; ++round) {
    const auto fails = [](unsigned block) {
      return [=] {
        if (blockIdx.x == block && threadIdx.x == 100) __byte_perm(1, 2, 0x8000);
        __syncthreads();
      };
    };
    EXPECT_THROW(launch(3, 1024, 0, fails(1)), KernelFault);
    EXPECT_NO_THROW(launch(3, 1024, 0, fails(3)));
  }
}

}  // namespace
}  // namespace blindfuse::emulator
