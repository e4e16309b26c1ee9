// The emulator of CUDA against plain loops over the definitions of the PTX ISA, and every mistake
// of a kernel that it is there to find.
#include "tests/cuda/emulator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support.h"

namespace blindfuse {
namespace {

using emulator::launch;
using emulator::launch_with;
using emulator::LaunchReport;
using emulator::Schedule;
using emulator::Step;
using support::SeededRandom;

constexpr unsigned kFull = 0xffffffff;
constexpr Schedule kSchedules[] = {{false, false}, {false, true}, {true, false}, {true, true}};

// 16-byte aligned, as global memory that is copied from has to be.
struct alignas(16) Chunk {
  std::array<uint8_t, 16> bytes;
};

std::vector<Chunk> random_chunks(SeededRandom& random, size_t count) {
  std::vector<Chunk> lines(count);
  for (Chunk& line : lines) {
    for (uint8_t& byte : line.bytes) byte = random.byte();
  }
  return lines;
}

__device__ unsigned thread_number() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}
__device__ unsigned block_number() {
  return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
}
__device__ uint32_t* shared_words() { return reinterpret_cast<uint32_t*>(dynamic_shared_memory()); }

// The message of the error that the launch of one block ends with.
std::string error_of_kernel(const std::function<void()>& kernel, dim3 block = 32,
                            size_t shared = 256) {
  try {
    launch(1, block, shared, kernel);
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return "no error";
}

void expect_error(const std::string& part, const std::function<void()>& kernel, dim3 block = 32,
                  size_t shared = 256) {
  const std::string message = error_of_kernel(kernel, block, shared);
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

struct Indices {
  unsigned thread[3], block[3], block_size[3], grid_size[3], visits;
};

__global__ void __launch_bounds__(1024) note_indices(const __grid_constant__ dim3, Indices* seen) {
  const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
  Indices& mine = seen[block_number() * threads + thread_number()];
  __syncthreads();  // the indices are still its own after another thread's turn
  mine = {{threadIdx.x, threadIdx.y, threadIdx.z},
          {blockIdx.x, blockIdx.y, blockIdx.z},
          {blockDim.x, blockDim.y, blockDim.z},
          {gridDim.x, gridDim.y, gridDim.z},
          mine.visits + 1};
}

void expect_indices(dim3 grid, dim3 block) {
  std::vector<Indices> seen(size_t{grid.x} * grid.y * grid.z * block.x * block.y * block.z);
  launch(grid, block, 0, note_indices, grid, seen.data());
  const Indices* next = seen.data();
  for (unsigned bz = 0; bz < grid.z; ++bz)
    for (unsigned by = 0; by < grid.y; ++by)
      for (unsigned bx = 0; bx < grid.x; ++bx)
        for (unsigned z = 0; z < block.z; ++z)
          for (unsigned y = 0; y < block.y; ++y)
            for (unsigned x = 0; x < block.x; ++x) {
              const Indices right = {{x, y, z},
                                     {bx, by, bz},
                                     {block.x, block.y, block.z},
                                     {grid.x, grid.y, grid.z},
                                     1};
              ASSERT_EQ(std::memcmp(next++, &right, sizeof(right)), 0) << x << ' ' << y << ' ' << z;
            }
}

TEST(CudaEmulator, GridsAndBlocksHaveUpToThreeDimensions) {
  expect_indices(1, 32);
  expect_indices(5, 1024);
  expect_indices(dim3(3, 4), dim3(8, 12));
  expect_indices(dim3(2, 3, 2), dim3(4, 8, 5));
}

TEST(CudaEmulator, TypesAreLaidOutAsInCuda) {
  static_assert(sizeof(uint2) == 8 && alignof(uint2) == 8);
  static_assert(sizeof(uint4) == 16 && alignof(uint4) == 16);
  static_assert(sizeof(int4) == 16 && alignof(int4) == 16);
  static_assert(sizeof(uchar4) == 4 && alignof(uchar4) == 4);
  EXPECT_EQ(make_uint2(1, 2).y, 2u);
  EXPECT_EQ(make_uint4(1, 2, 3, 4).w, 4u);
  EXPECT_EQ(make_int4(1, 2, 3, -4).w, -4);
  EXPECT_EQ(make_uchar4(1, 2, 3, 255).w, 255);
  EXPECT_EQ(dim3(7).x * dim3(7).y * dim3(7).z, 7u);
  const uint4 words = make_uint4(1, 2, 3, 4);
  EXPECT_EQ(__ldg(&words).z, 3u);
  EXPECT_EQ(load_once_16(&words).z, 3u);
}

__global__ void reverse_often(unsigned rounds, bool forgets, uint32_t* wrong) {
  const unsigned threads = blockDim.x * blockDim.y;
  for (unsigned round = 0; round < rounds; ++round) {
    shared_words()[thread_number()] = round * 10000 + thread_number();
    if (!forgets) __syncthreads();
    const unsigned other = threads - 1 - thread_number();
    if (shared_words()[other] != round * 10000 + other) atomicAdd(wrong, 1);
    __syncthreads();
  }
}

TEST(CudaEmulator, WhatIsWrittenBeforeABarrierIsSeenAfterIt) {
  for (const Schedule& schedule : kSchedules) {
    for (const dim3 block : {dim3(32), dim3(96), dim3(16, 16), dim3(1024)}) {
      uint32_t wrong = 0;
      launch_with(schedule, 2, block, 4096, reverse_often, 9u, false, &wrong);
      EXPECT_EQ(wrong, 0u);
    }
  }
}

TEST(CudaEmulator, AMissingBarrierIsFoundForwardAndBackward) {
  for (const Schedule& schedule : kSchedules) {
    uint32_t wrong = 0;
    launch_with(schedule, 1, 256, 4096, reverse_often, 3u, true, &wrong);
    EXPECT_GT(wrong, 0u);
  }
}

// A warp goes on as far as it can alone, from the first to the last or the other way.
TEST(CudaEmulator, WarpsTakeTurnsAtBarriersOfTheBlock) {
  for (const bool backward : {false, true}) {
    std::vector<unsigned> warps;
    launch_with({.backward = backward, .early_copies = false}, 1, 96, 0, [&] {
      for (unsigned round = 0; round < 2; ++round) {
        if (threadIdx.x % 32 == 7) warps.push_back(threadIdx.x / 32);
        __syncwarp();
        if (threadIdx.x % 32 == 9) warps.push_back(threadIdx.x / 32);
        if (round == 0) __syncthreads();
      }
    });
    const std::vector<unsigned> once = backward ? std::vector<unsigned>{2, 2, 1, 1, 0, 0}
                                                : std::vector<unsigned>{0, 0, 1, 1, 2, 2};
    ASSERT_EQ(warps.size(), 12u);
    EXPECT_TRUE(std::equal(once.begin(), once.end(), warps.begin()));
  }
}

TEST(CudaEmulator, LanesTakeTurnsForwardOrBackward) {
  for (const bool backward : {false, true}) {
    std::vector<unsigned> lanes;
    launch_with({.backward = backward, .early_copies = false}, 1, 64, 0,
                [&] { lanes.push_back(threadIdx.x); });
    if (backward) std::ranges::reverse(lanes);
    ASSERT_EQ(lanes.size(), 64u);
    for (unsigned i = 0; i < 64; ++i) EXPECT_EQ(lanes[i], i);
  }
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
  lines[0].bytes.fill(1);
  lines[1].bytes.fill(2);
  // What is in the first bytes of two 16-byte places at each step.
  const auto observe = [&](bool early) {
    std::vector<std::string> steps;
    launch_with({.backward = false, .early_copies = early}, 1, 32, 1024, [&] {
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
      __syncthreads();
      look();
      wait_copies<2>();
      look();
      wait_copies<1>();
      look();
      wait_copies<0>();
      look();
    });
    return steps;
  };
  EXPECT_EQ(observe(false), (std::vector<std::string>{"--", "--", "--", "1-", "12"}));
  EXPECT_EQ(observe(true), (std::vector<std::string>{"1-", "12", "12", "12", "12"}));
}

TEST(CudaEmulator, CopiesTakePlaceOnce) {
  const Chunk line{};
  for (const Schedule& schedule : kSchedules) {
    unsigned kept = 0;
    launch_with(schedule, 1, 32, 1024, [&] {
      uint8_t* const place = dynamic_shared_memory() + threadIdx.x * 16;
      copy_16_async(place, &line);
      commit_copies();
      if (!schedule.early_copies) wait_copies<0>();
      *place = 5;
      wait_copies<0>();
      if (*place == 5) ++kept;
    });
    EXPECT_EQ(kept, 32u);
  }
}

TEST(CudaEmulator, GroupsMayBeEmptyAndOfSeveralCopies) {
  std::vector<Chunk> lines(1);
  lines[0].bytes.fill(7);
  std::vector<unsigned> sums;
  launch(1, 32, 1024, [&] {
    uint8_t* const place = dynamic_shared_memory() + threadIdx.x * 32;
    copy_16_async(place, lines.data());
    copy_16_async(place + 16, lines.data());
    commit_copies();
    for (int i = 0; i < 2; ++i) {
      commit_copies();
      wait_copies<2>();
      if (threadIdx.x == 0) sums.push_back(place[0] + 1000u * place[31]);
    }
  });
  EXPECT_EQ(sums, (std::vector<unsigned>{0xcd + 1000 * 0xcd, 7007}));
}

TEST(CudaEmulator, LoadsAndCopiesAreOfSixteenBytes) {
  SeededRandom random(3);
  const std::vector<Chunk> lines = random_chunks(random, 32);
  std::vector<Chunk> copied(32), loaded(32), streamed(32);
  launch(1, 32, 512, [&] {
    const unsigned i = threadIdx.x;
    copy_16_async(dynamic_shared_memory() + i * 16, &lines[i]);
    commit_copies();
    wait_copies<0>();
    __syncthreads();
    std::memcpy(&copied[i], dynamic_shared_memory() + i * 16, 16);
    const uint4 shared = load_shared_16(dynamic_shared_memory() + (31 - i) * 16);
    std::memcpy(&loaded[31 - i], &shared, 16);
    const uint4 global = load_once_16(&lines[i]);
    std::memcpy(&streamed[i], &global, 16);
  });
  for (unsigned i = 0; i < 32; ++i) {
    EXPECT_EQ(copied[i].bytes, lines[i].bytes);
    EXPECT_EQ(loaded[i].bytes, lines[i].bytes);
    EXPECT_EQ(streamed[i].bytes, lines[i].bytes);
  }
}

// D = A * B + C, all in rows, with the fragments as the PTX ISA has them in "Matrix Fragments for
// mma.m16n8k32".
struct Multiplication {
  int8_t a[16][32];
  int8_t b[32][8];
  uint32_t c[16][8];
  uint32_t d[16][8];
};

__global__ void multiply(Multiplication* m) {
  const unsigned group_id = threadIdx.x >> 2;
  const unsigned thread_in_group = threadIdx.x % 4;
  uint32_t a[4] = {}, b[2] = {};
  int32_t sums[4];
  for (unsigned i = 0; i < 16; ++i) {
    const unsigned row = i < 4 || (8 <= i && i < 12) ? group_id : group_id + 8;
    const unsigned column = thread_in_group * 4 + (i & 3) + (i < 8 ? 0 : 16);
    a[i / 4] |= uint32_t{static_cast<uint8_t>(m->a[row][column])} << (i % 4 * 8);
  }
  for (unsigned i = 0; i < 8; ++i) {
    const unsigned row = thread_in_group * 4 + (i & 3) + (i < 4 ? 0 : 16);
    b[i / 4] |= uint32_t{static_cast<uint8_t>(m->b[row][group_id])} << (i % 4 * 8);
  }
  const auto row_of = [&](unsigned i) { return i < 2 ? group_id : group_id + 8; };
  const auto column_of = [&](unsigned i) { return thread_in_group * 2 + (i & 1); };
  for (unsigned i = 0; i < 4; ++i) sums[i] = static_cast<int32_t>(m->c[row_of(i)][column_of(i)]);
  mma_s8_s8(sums, a, b);
  for (unsigned i = 0; i < 4; ++i) m->d[row_of(i)][column_of(i)] = static_cast<uint32_t>(sums[i]);
}

void expect_product(Multiplication m) {
  launch(1, 32, 0, multiply, &m);
  for (unsigned row = 0; row < 16; ++row) {
    for (unsigned column = 0; column < 8; ++column) {
      uint32_t sum = m.c[row][column];
      for (unsigned k = 0; k < 32; ++k) {
        sum += static_cast<uint32_t>(int32_t{m.a[row][k]} * int32_t{m.b[k][column]});
      }
      ASSERT_EQ(m.d[row][column], sum) << row << ' ' << column;
    }
  }
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

// Each onto sums of its own.
TEST(CudaEmulator, MultipliesFourMatricesWithTheSame) {
  SeededRandom random(8);
  for (const Schedule& schedule : kSchedules) {
    const std::vector<uint32_t> a = random.words(32 * 4), b = random.words(32 * 8);
    const std::vector<uint32_t> start = random.words(32 * 16);
    std::vector<uint32_t> one_by_one(start.size()), together(start.size());
    launch_with(schedule, 1, 32, 0, [&] {
      const unsigned lane = threadIdx.x;
      uint32_t mine[4], words[4][2];
      int32_t sums[2][4][4];
      std::memcpy(mine, &a[lane * 4], sizeof mine);
      std::memcpy(words, &b[lane * 8], sizeof words);
      for (auto& each : sums) std::memcpy(each, &start[lane * 16], sizeof each);
      for (unsigned i = 0; i < 4; ++i) mma_s8_s8(sums[0][i], mine, words[i]);
      mma_s8_s8_four(sums[1], mine, words);
      std::memcpy(&one_by_one[lane * 16], sums[0], sizeof sums[0]);
      std::memcpy(&together[lane * 16], sums[1], sizeof sums[1]);
    });
    EXPECT_EQ(one_by_one, together);
    EXPECT_NE(one_by_one, start);
  }
}

TEST(CudaEmulator, MultipliesMatricesModulo2To32) {
  SeededRandom random(5);
  Multiplication m{};
  for (unsigned round = 0; round < 20; ++round) {
    for (auto& row : m.a)
      std::ranges::generate(row, [&] { return static_cast<int8_t>(random.byte()); });
    for (auto& row : m.b)
      std::ranges::generate(row, [&] { return static_cast<int8_t>(random.byte()); });
    for (auto& row : m.c) std::ranges::generate(row, [&] { return random.u32(); });
    expect_product(m);
  }
  for (const uint32_t start : {0x80000000u, 0x7fffffffu, 0u}) {
    for (const int extreme : {-128, 127}) {
      for (auto& row : m.a) std::ranges::fill(row, static_cast<int8_t>(extreme));
      for (auto& row : m.b) std::ranges::fill(row, int8_t{-128});
      for (auto& row : m.c) std::ranges::fill(row, start);
      expect_product(m);
    }
  }
}

// 64 x 32 times 32 x N, b with the 128-byte swizzle: the 16-byte chunk c of row n lies at chunk
// c xor (n mod 8) of that row.
template <int kColumns>
void expect_group_product(SeededRandom& random, unsigned first_byte, const Schedule& schedule) {
  std::vector<int8_t> a(64 * 32), b(kColumns * 128);
  for (int8_t& byte : a) byte = static_cast<int8_t>(random.byte());
  for (int8_t& byte : b) byte = static_cast<int8_t>(random.byte());
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
  launch_with(schedule, 1, 128, kColumns * 128, [&] {
    for (unsigned i = threadIdx.x; i < kColumns * 128; i += 128) {
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
    wgmma_s8_s8<kColumns>(mine, words, dynamic_shared_memory() + first_byte);
    wgmma_commit();
    wgmma_wait();
    for (unsigned i = 0; i < kColumns / 2; ++i) sums[at(i)] = static_cast<uint32_t>(mine[i]);
  });
  EXPECT_EQ(sums, expected) << kColumns << " columns from byte " << first_byte;
}

TEST(CudaEmulator, MultipliesMatricesOfAWarpgroup) {
  SeededRandom random(7);
  for (const Schedule& schedule : kSchedules) {
    for (const unsigned first_byte : {0, 32, 64, 96}) {
      expect_group_product<32>(random, first_byte, schedule);
      expect_group_product<256>(random, first_byte, schedule);
    }
  }
}

TEST(CudaEmulator, FindsProductsOfAWarpgroupThatAreWrong) {
  const auto product = [](size_t at) {
    int32_t sums[16] = {};
    const uint32_t a[4] = {};
    wgmma_fence();
    wgmma_s8_s8<32>(sums, a, dynamic_shared_memory() + at);
    wgmma_commit();
    wgmma_wait();
  };
  expect_error(
      "wgmma_s8_s8 of less than four warps", [&] { product(0); }, 64, 4096);
  expect_error(
      "in the first of eight rows", [&] { product(128); }, 128, 8192);
  expect_error(
      "of other limbs than another thread's", [&] { product(threadIdx.x == 9 ? 32 : 0); }, 128,
      4096);
  expect_error(
      "wgmma_s8_s8 of limbs beyond shared memory", [&] { product(0); }, 128, 4080);
  expect_error(
      "no error", [&] { product(0); }, 128, 4096);
}

// PTX ISA, "Matrix descriptor": by hand, 0x2400 / 16 from bit 0 on, 1 from bit 16 on, 1024 / 16
// from bit 32 on, and 1 in bits 62 and 63.
TEST(CudaEmulator, DescriptorsHaveTheirFieldsInPlace) {
  EXPECT_EQ(wgmma_descriptor(0x2400), 0x4000'0040'0001'0240u);
  EXPECT_EQ(wgmma_descriptor(0x38000), 0x4000'0040'0001'3800u);
}

// Of b row n = 8 i + j begins 128 j bytes after the i-th stride. Where k = 0 alone counts, a sum is
// the product of two bytes.
TEST(CudaEmulator, ReadsWhatTheDescriptorSays) {
  constexpr uint64_t kStride = 3072;
  launch(1, 128, 3 * kStride + 1024, [] {
    if (threadIdx.x == 0) {
      for (unsigned row = 0; row < 32; ++row) {
        uint8_t* const bytes = dynamic_shared_memory() + row / 8 * kStride + row % 8 * 128;
        std::memset(bytes, 0, 128);
        bytes[(2 ^ row % 8) * 16] = static_cast<uint8_t>(row + 1);  // k = 32, the third chunk
      }
    }
    __syncthreads();
    int32_t sums[16] = {};
    const uint32_t a[4] = {threadIdx.x % 4 == 0 ? 3u : 0u};
    const uint64_t descriptor = (wgmma_descriptor(32) & ~(uint64_t{0x3fff} << 32)) | (kStride / 16)
                                                                                         << 32;
    wgmma_fence();
    emulator::start_group_product(sums, 32, a, descriptor);
    wgmma_commit();
    wgmma_wait();
    for (unsigned i = 0; i < 16; ++i) {
      const unsigned column = i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2;
      const int32_t expected = i % 4 < 2 ? 3 * static_cast<int32_t>(column + 1) : 0;
      EXPECT_EQ(sums[i], expected) << threadIdx.x << ' ' << i;
    }
  });
  const auto of_descriptor = [](uint64_t descriptor) {
    return [=] {
      int32_t sums[16] = {};
      const uint32_t a[4] = {};
      wgmma_fence();
      emulator::start_group_product(sums, 32, a, descriptor);
      wgmma_commit();
      wgmma_wait();
    };
  };
  const uint64_t right = wgmma_descriptor(0);
  expect_error("no error", of_descriptor(right), 128, 4096);
  expect_error("without the 128-byte swizzle", of_descriptor(right ^ uint64_t{3} << 62), 128, 4096);
  expect_error("with a base offset", of_descriptor(right | uint64_t{1} << 49), 128, 4096);
}

// PTX ISA, "wgmma.fence": before the first product, and between any access to registers of a
// product and the product, unless it is the sums of one of the same shape that is under way.
TEST(CudaEmulator, FindsProductsOfRegistersWithoutAFence) {
  const auto products = [](bool first, bool second) {
    return [=] {
      int32_t sums[16] = {};
      const uint32_t a[4] = {};
      if (first) wgmma_fence();
      wgmma_s8_s8<32>(sums, a, dynamic_shared_memory());
      wgmma_s8_s8<32>(sums, a, dynamic_shared_memory() + 32);
      wgmma_commit();
      wgmma_wait();
      if (second) wgmma_fence();
      wgmma_s8_s8<32>(sums, a, dynamic_shared_memory());
      wgmma_commit();
      wgmma_wait();
    };
  };
  expect_error("wgmma_s8_s8 without wgmma_fence() before", products(false, true), 128, 4096);
  expect_error("wgmma_s8_s8 without wgmma_fence() before", products(true, false), 128, 4096);
  expect_error("no error", products(true, true), 128, 4096);
}

// PTX ISA, "wgmma.wait_group": it waits for groups, and a product is in none before it is
// committed.
TEST(CudaEmulator, FindsProductsThatAreNeverWaitedFor) {
  const auto products = [](bool commits, bool waits, bool commits_again) {
    return [=] {
      int32_t sums[16] = {};
      const uint32_t a[4] = {};
      wgmma_fence();
      wgmma_s8_s8<32>(sums, a, dynamic_shared_memory());
      if (commits) wgmma_commit();
      wgmma_s8_s8<32>(sums, a, dynamic_shared_memory());
      if (commits_again) wgmma_commit();
      if (waits) wgmma_wait();
    };
  };
  for (const Schedule& schedule : kSchedules) {
    EXPECT_THROW(launch_with(schedule, 1, 128, 4096, products(true, true, false)),
                 std::logic_error);
  }
  expect_error("ended with 2 products that it had not waited for", products(false, true, false),
               128, 4096);
  expect_error("ended with 1 products that it had not waited for", products(true, true, false), 128,
               4096);
  expect_error("ended with 2 products that it had not waited for", products(true, false, true), 128,
               4096);
  expect_error("no error", products(false, true, true), 128, 4096);
}

// Sixteen bytes come to thread 0's chunk, and a product of all threads reads them.
void copy_and_multiply(const Chunk* from, Step omitted, bool publishes_first) {
  const auto does = [&](Step step) { return omitted != step; };
  for (unsigned i = threadIdx.x; i < 256; i += 128) {
    copy_16_async(dynamic_shared_memory() + 16 * i, from + i);
  }
  commit_copies();
  if (publishes_first) publish_shared();
  if (does(Step::kCopyWait)) wait_copies<0>();
  if (does(Step::kPublish) && !publishes_first) publish_shared();
  if (does(Step::kBlockBarrier)) __syncthreads();
  int32_t sums[16] = {};
  const uint32_t a[4] = {};
  wgmma_fence();
  wgmma_s8_s8<32>(sums, a, dynamic_shared_memory());
  wgmma_commit();
  wgmma_wait();
  wait_copies<0>();
}

// PTX ISA, "Proxies": a fence between what the generic proxy wrote, and that is a completed
// cp.async too, and what the asynchronous proxy reads.
TEST(CudaEmulator, FindsProductsOfWhatWasNotPublished) {
  const std::vector<Chunk> global(256);
  const auto products = [&](Step omitted, bool publishes_first = false) {
    return [&global, omitted, publishes_first] {
      copy_and_multiply(global.data(), omitted, publishes_first);
    };
  };
  expect_error("no error", products(Step::kNone), 128, 4096);
  expect_error("starts a product of byte", products(Step::kCopyWait), 128, 4096);
  expect_error("where a copy is on its way to", products(Step::kCopyWait), 128, 4096);
  expect_error("publish_shared() did not publish", products(Step::kPublish), 128, 4096);
  expect_error("publish_shared() did not publish", products(Step::kNone, true), 128, 4096);
  expect_error("published with no barrier since", products(Step::kBlockBarrier), 128, 4096);
  // As if it were not in the kernel.
  for (const Step omitted : {Step::kCopyWait, Step::kPublish, Step::kBlockBarrier,
                             Step::kWgmmaFence, Step::kWgmmaCommit, Step::kWgmmaWait}) {
    for (Schedule schedule : kSchedules) {
      schedule.omitted = omitted;
      EXPECT_THROW(launch_with(schedule, 1, 128, 4096, products(Step::kNone)), std::logic_error)
          << static_cast<int>(omitted);
    }
  }
}

// PTX ISA, "wgmma.mma_async": shared memory that a product reads must not change before the wait.
TEST(CudaEmulator, FindsCopiesToWhatAProductReads) {
  static const Chunk line{};
  const auto copies = [](bool waits, bool meets) {
    return [=] {
      int32_t sums[16] = {};
      const uint32_t a[4] = {};
      wgmma_fence();
      wgmma_s8_s8<32>(sums, a, dynamic_shared_memory());
      wgmma_commit();
      if (waits) wgmma_wait();
      if (meets) __syncthreads();
      // Of the warp that runs first.
      if (threadIdx.x == 101) copy_16_async(dynamic_shared_memory() + 128, &line);
      commit_copies();
      wait_copies<0>();
      wgmma_wait();
    };
  };
  const std::string wrong =
      "copies to byte 128, which a product reads that not all have waited for";
  expect_error(wrong, copies(false, false), 128, 4096);
  expect_error(wrong, copies(false, true), 128, 4096);
  expect_error(wrong, copies(true, false), 128, 4096);
  expect_error("no error", copies(true, true), 128, 4096);
  // Row 1 begins with its second chunk: what the first has in row 0 is in 16 .. 31 there.
  expect_error(
      "no error",
      [] {
        int32_t sums[16] = {};
        const uint32_t a[4] = {};
        wgmma_fence();
        wgmma_s8_s8<32>(sums, a, dynamic_shared_memory());
        wgmma_commit();
        if (threadIdx.x == 0) copy_16_async(dynamic_shared_memory() + 128 + 32, &line);
        commit_copies();
        wait_copies<0>();
        wgmma_wait();
      },
      128, 4096);
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
  SeededRandom random(6);
  constexpr unsigned kRounds = 50;
  const std::vector<uint32_t> words = random.words(kRounds * 64);
  const std::vector<uint32_t> sources = random.words(kRounds * 64);
  for (const Schedule& schedule : kSchedules) {
    std::vector<uint32_t> shuffled(words.size()), crossed(words.size()), sums(words.size());
    launch_with(schedule, 1, 64, 0, [&] {
      for (unsigned round = 0; round < kRounds; ++round) {
        const unsigned at = round * 64 + thread_number();
        const auto source = static_cast<int>(sources[at]);
        shuffled[at] = __shfl_sync(kFull, words[at], source);
        crossed[at] = __shfl_xor_sync(kFull, words[at], static_cast<int>(round % 32));
        sums[at] = __reduce_add_sync(kFull, words[at]);
      }
    });
    for (unsigned i = 0; i < words.size(); ++i) {
      const unsigned warp = i / 32 * 32;
      uint32_t sum = 0;
      for (unsigned lane = 0; lane < 32; ++lane) sum += words[warp + lane];
      ASSERT_EQ(shuffled[i], words[warp + sources[i] % 32]);
      ASSERT_EQ(crossed[i], words[warp + ((i % 32) ^ (i / 64 % 32))]);
      ASSERT_EQ(sums[i], sum);
    }
  }
  launch(1, 32, 0, [] {
    const float mine = static_cast<float>(threadIdx.x) + 0.5f;
    EXPECT_EQ(__shfl_sync(kFull, mine, 3), 3.5f);
    EXPECT_EQ(__shfl_xor_sync(kFull, -static_cast<int>(threadIdx.x), 31),
              static_cast<int>(threadIdx.x) - 31);
  });
}

TEST(CudaEmulator, AtomicAddOverSeveralBlocks) {
  unsigned sum = 0xfffffff0;
  std::vector<unsigned> olds(5 * 64);
  launch(5, 64, 0, [&] { olds[block_number() * 64 + thread_number()] = atomicAdd(&sum, 3) + 16; });
  EXPECT_EQ(sum, 0xfffffff0 + 5 * 64 * 3);
  std::ranges::sort(olds);
  for (unsigned i = 0; i < olds.size(); ++i) EXPECT_EQ(olds[i], 3 * i);

  unsigned long long wide = 0xfffffffffffffff0;
  launch(5, 64, 0, [&] { atomicAdd(&wide, 0x100000001); });
  EXPECT_EQ(wide, 0xfffffffffffffff0 + 5 * 64 * 0x100000001);
}

// Rows of 128 bytes. Lane l takes 16-byte column `column` of row l, which lies xor-ed with the
// row's number if `swizzled`.
unsigned place_in_rows(unsigned row, unsigned column, bool swizzled) {
  return row * 128 + (swizzled ? column ^ (row % 8) : column) * 16;
}

__global__ void load_column(unsigned column, bool swizzled) {
  load_shared_16(dynamic_shared_memory() + place_in_rows(threadIdx.x % 32, column, swizzled));
}

// The first `copying` lanes copy `columns` columns each.
__global__ void copy_columns(unsigned columns, bool swizzled, unsigned copying,
                             const Chunk* source) {
  for (unsigned column = 0; column < columns && threadIdx.x < copying; ++column) {
    const unsigned place = place_in_rows(threadIdx.x, column, swizzled);
    copy_16_async(dynamic_shared_memory() + place, source);
  }
  commit_copies();
  wait_copies<0>();
}

TEST(CudaEmulator, CountsBankConflicts) {
  const auto of_load = [](unsigned column, bool swizzled) {
    return launch(3, 64, 4096, load_column, column, swizzled).bank_conflicts;
  };
  EXPECT_EQ(of_load(0, false), 3u * 2 * 4 * 7);  // blocks, warps, phases
  EXPECT_EQ(of_load(5, false), 3u * 2 * 4 * 7);
  EXPECT_EQ(of_load(0, true), 0u);
  EXPECT_EQ(of_load(5, true), 0u);

  const Chunk line{};
  const auto of_copies = [&](bool swizzled, unsigned copying) {
    return launch(2, 32, 4096, copy_columns, 6u, swizzled, copying, &line).bank_conflicts;
  };
  EXPECT_EQ(of_copies(false, 32), 2u * 6 * 4 * 7);
  EXPECT_EQ(of_copies(true, 32), 0u);
  EXPECT_EQ(of_copies(false, 11), 2u * 6 * (7 + 2));  // 8 lanes, and 3 of the next
  EXPECT_EQ(of_copies(false, 9), 2u * 6 * 7);

  // The same row for all is read once; pairs of rows in the same banks, four times two passes.
  const auto of_rows = [](unsigned pitch, unsigned count) {
    const auto load = [=] {
      load_shared_16(dynamic_shared_memory() + threadIdx.x % count * pitch);
    };
    return launch(1, 32, 4096, load).bank_conflicts;
  };
  EXPECT_EQ(of_rows(128, 1), 0u);
  EXPECT_EQ(of_rows(128, 2), 4u);
  EXPECT_EQ(of_rows(32, 8), 4u);
  EXPECT_EQ(of_rows(16, 8), 0u);
}

TEST(CudaEmulator, FindsWrongAddresses) {
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
  expect_error("load_once_16 of an address that is not a multiple of 16",
               [] { load_once_16(global + 8); });
  expect_error("load_shared_16 at byte 40 of shared memory, which is not a multiple", load(40));
  expect_error("load_shared_16 at byte 256 of shared memory, which is outside", load(256));
  expect_error("load_shared_16 at byte 241 of shared memory, which is outside", load(241));
  expect_error(
      "block (0, 0, 0), thread (1, 2, 0): load_shared_16 at byte 40",
      [&] { load(threadIdx.x == 1 && threadIdx.y == 2 ? 40 : 0)(); }, dim3(8, 4));
}

TEST(CudaEmulator, FindsThreadsThatDoNotMeet) {
  expect_error("waits at __syncthreads and lane 9 of its warp at __syncwarp", [] {
    if (threadIdx.x < 10) __syncwarp();
    __syncthreads();
  });
  expect_error("waits at __shfl_xor_sync and lane 0 of its warp at __shfl_sync",
               [] { threadIdx.x == 0 ? __shfl_sync(kFull, 1, 1) : __shfl_xor_sync(kFull, 1, 1); });
  expect_error(
      "is dead locked: 31 threads waiting at mma_s8_s8 (the first is (0, 0, 0)), "
      "1 threads ended (the first is (31, 0, 0))",
      [] {
        int32_t sums[4] = {};
        const uint32_t a[4] = {}, b[2] = {};
        if (threadIdx.x != 31) mma_s8_s8(sums, a, b);
      });
  expect_error(
      "32 threads ended (the first is (0, 0, 0)), 32 threads waiting at __syncthreads",
      [] {
        if (threadIdx.x >= 32) __syncthreads();
      },
      64);
  expect_error(
      "32 threads waiting at __syncthreads (the first is (0, 0, 0)), "
      "31 threads waiting at __syncwarp (the first is (0, 1, 0)), 1 threads ended",
      [] {
        if (threadIdx.y == 0)
          __syncthreads();
        else if (threadIdx.x != 31)
          __syncwarp();
      },
      dim3(32, 2));
}

TEST(CudaEmulator, FindsCopiesThatAreNeverWaitedFor) {
  static const Chunk line{};
  const auto copies = [](bool commits, bool waits) {
    return [=] {
      copy_16_async(dynamic_shared_memory() + threadIdx.x * 32, &line);
      copy_16_async(dynamic_shared_memory() + threadIdx.x * 32 + 16, &line);
      if (commits) commit_copies();
      if (waits) wait_copies<0>();
    };
  };
  expect_error("ended with 2 asynchronous copies that it had not waited for", copies(false, false),
               32, 1024);
  expect_error("ended with 2 asynchronous copies that it had not waited for", copies(true, false),
               32, 1024);
  expect_error("ended with 2 asynchronous copies that it had not waited for", copies(false, true),
               32, 1024);
  expect_error("no error", copies(true, true), 32, 1024);
}

// PTX ISA, "cp.async": what is copied is seen by the thread that waited for it, and by others after
// a barrier; two writes to a place, or a read and a write, that nothing orders are a race.
TEST(CudaEmulator, FindsRacesWithCopies) {
  static const Chunk line{};
  expect_error("copies to byte 16, where another copy is on its way to", [] {
    if (threadIdx.x < 2) copy_16_async(dynamic_shared_memory() + 16, &line);
    __syncwarp();
  });
  const auto reads = [](bool waits, bool meets, unsigned reader) {
    return [=] {
      if (threadIdx.x == 3) copy_16_async(dynamic_shared_memory() + 32, &line);
      commit_copies();
      if (waits) wait_copies<0>();
      __syncwarp();
      if (meets) __syncthreads();
      if (threadIdx.x == reader) load_shared_16(dynamic_shared_memory() + 32);
      wait_copies<0>();
    };
  };
  expect_error("reads byte 32, where a copy is on its way to", reads(false, true, 3));
  expect_error("which another thread's copy brought, with no barrier since", reads(true, false, 4));
  expect_error("no error", reads(true, false, 3));
  expect_error("no error", reads(true, true, 4));
  const auto writes = [](bool meets, unsigned writer) {
    return [=] {
      if (threadIdx.x == 3 || threadIdx.x == 5) load_shared_16(dynamic_shared_memory());
      __syncwarp();
      if (meets) __syncthreads();
      if (threadIdx.x == writer) copy_16_async(dynamic_shared_memory(), &line);
      commit_copies();
      wait_copies<0>();
    };
  };
  expect_error("which another thread reads, with no barrier since", writes(false, 5));
  expect_error("which another thread reads, with no barrier since", writes(false, 4));
  expect_error("no error", writes(true, 4));
  expect_error("no error", [] {
    if (threadIdx.x == 3) {
      load_shared_16(dynamic_shared_memory());
      copy_16_async(dynamic_shared_memory(), &line);
    }
    commit_copies();
    wait_copies<0>();
  });
}

TEST(CudaEmulator, RefusesWhatItDoesNotEmulate) {
  expect_error("__syncwarp with a mask of some lanes", [] { __syncwarp(0xffff); });
  expect_error("__reduce_add_sync with a mask of some lanes", [] { __reduce_add_sync(1, 1); });
  expect_error("__shfl_sync with a mask of some lanes", [] { __shfl_sync(1, 1, 1); });
  expect_error("__shfl_xor_sync with a mask of some lanes", [] { __shfl_xor_sync(1, 1, 1); });
  expect_error(
      "a block of 33 threads", [] {}, 33);
  expect_error(
      "a block of 0 threads", [] {}, 0);
  expect_error(
      "a block of 1056 threads", [] {}, dim3(32, 33));
  EXPECT_THROW(launch(dim3(1, 0), 32, 0, [] {}), std::logic_error);
}

// CUDA C++ Programming Guide, "Technical specifications per compute capability".
TEST(CudaEmulator, RefusesGridsThatAreTooLarge) {
  const auto error_of_grid = [](dim3 grid) -> std::string {
    try {
      launch(grid, 32, 0, [] { throw std::runtime_error("it runs"); });
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(error_of_grid(dim3(0x80000000)),
            "a grid of (2147483648, 1, 1) blocks: there may be up to (2147483647, 65535, 65535)");
  EXPECT_NE(error_of_grid(dim3(1, 65536)).find("a grid of (1, 65536, 1)"), std::string::npos);
  EXPECT_NE(error_of_grid(dim3(1, 1, 65536)).find("a grid of (1, 1, 65536)"), std::string::npos);
  EXPECT_EQ(error_of_grid(dim3(0x7fffffff, 65535, 65535)), "it runs");
}

// An error in the middle of a launch, with threads that wait and threads that have yet to begin.
TEST(CudaEmulator, ErrorsLeaveNothingBehind) {
  for (unsigned round = 0; round < 3; ++round) {
    const auto fail = [] {
      if (blockIdx.x == 1 && threadIdx.x == 100) throw std::runtime_error("of the kernel's own");
      __syncthreads();
    };
    EXPECT_THROW(launch(3, 1024, 0, fail), std::runtime_error);
    uint32_t wrong = 0;
    launch(1, 1024, 4096, reverse_often, 2u, false, &wrong);
    EXPECT_EQ(wrong, 0u);
  }
}

}  // namespace
}  // namespace blindfuse
