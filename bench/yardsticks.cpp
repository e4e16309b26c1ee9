#include "bench/yardsticks.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <span>
#include <vector>

namespace blindfuse::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Reads whole cache lines into eight sums at once, fetched ahead as the product fetches them, so
// that neither loads nor additions limit the rate.
constexpr uint64_t kAheadBytes = 24 * 1024;

template <typename Line>
[[gnu::always_inline]] inline uint64_t sum_of(const int8_t* bytes, uint64_t count) {
  Line sums[8] = {};
  constexpr size_t kStep = sizeof sums;
  for (uint64_t i = 0; i + kStep <= count; i += kStep) {
    Line lines[8];
    for (size_t j = 0; j < kStep; j += 64) __builtin_prefetch(bytes + i + kAheadBytes + j);
    std::memcpy(lines, bytes + i, kStep);
    for (size_t j = 0; j < 8; ++j) sums[j] += lines[j];
  }
  for (size_t j = 1; j < 8; ++j) sums[0] += sums[j];
  return sums[0][0];
}

using Portable [[gnu::vector_size(16)]] = uint64_t;
uint64_t sum_portable(const int8_t* bytes, uint64_t count) {
  return sum_of<Portable>(bytes, count);
}

#if defined(__x86_64__)
using Wide [[gnu::vector_size(64)]] = uint64_t;
[[gnu::target("avx512f")]] uint64_t sum_avx512(const int8_t* bytes, uint64_t count) {
  return sum_of<Wide>(bytes, count);
}
using Half [[gnu::vector_size(32)]] = uint64_t;
[[gnu::target("avx2")]] uint64_t sum_avx2(const int8_t* bytes, uint64_t count) {
  return sum_of<Half>(bytes, count);
}
#endif

using Sum = uint64_t (*)(const int8_t*, uint64_t);
Sum widest_sum() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return sum_avx512;
  if (__builtin_cpu_supports("avx2")) return sum_avx2;
#endif
  return sum_portable;
}

// The instruction on kChains independent sums, `count` times each; the operands are hidden from the
// compiler every time, so that it computes nothing ahead and nothing once for all.
#define BLINDFUSE_CHAINS(kChains, Sum, Operand, multiply_add)                  \
  Sum sums[kChains] = {};                                                      \
  Operand words = {}, bytes = {};                                              \
  for (uint64_t i = 0; i < count; ++i) {                                       \
    _Pragma("GCC unroll 24") for (int j = 0; j < kChains; ++j) {               \
      asm volatile("" : BLINDFUSE_REGISTER(words), BLINDFUSE_REGISTER(bytes)); \
      sums[j] = multiply_add(sums[j], words, bytes);                           \
    }                                                                          \
  }                                                                            \
  _Pragma("GCC unroll 24") for (int j = 0; j < kChains; ++j) {                 \
    asm volatile("" : BLINDFUSE_REGISTER(sums[j]));                            \
  }

#if defined(__x86_64__)
#define BLINDFUSE_REGISTER(x) "+v"(x)

// Adds to four sums of tiles, as a product of two by two tiles does, with six tiles of sixteen
// rows. Only for machines on which the engine has tiles: it asked the system for them.
[[gnu::target("amx-tile,amx-int8")]] void loop_amx(uint64_t count) {
  struct alignas(64) {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16};
  } config;
  asm volatile("" : : "r"(&config) : "memory");
  _tile_loadconfig(&config);
  _tile_zero(4);
  _tile_zero(5);
  for (uint64_t i = 0; i < count; ++i) {
    _tile_dpbsud(0, 4, 5);
    _tile_dpbsud(1, 4, 5);
    _tile_dpbsud(2, 4, 5);
    _tile_dpbsud(3, 4, 5);
  }
  _tile_release();
}

[[gnu::target("avx512f,avx512vnni")]] void loop_avx512vnni(uint64_t count) {
  BLINDFUSE_CHAINS(20, __m512i, __m512i, _mm512_dpbusd_epi32);
}

[[gnu::target("avx2,avxvnni")]] void loop_avxvnni(uint64_t count) {
  BLINDFUSE_CHAINS(10, __m256i, __m256i, _mm256_dpbusd_avx_epi32);
}

[[gnu::target("avx512f")]] inline __m512i multiply_add_512(__m512i sum, __m512i a, __m512i b) {
  return _mm512_add_epi32(sum, _mm512_mullo_epi32(a, b));
}
[[gnu::target("avx512f")]] void loop_avx512(uint64_t count) {
  BLINDFUSE_CHAINS(20, __m512i, __m512i, multiply_add_512);
}

[[gnu::target("avx2")]] inline __m256i multiply_add_256(__m256i sum, __m256i a, __m256i b) {
  return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
}
[[gnu::target("avx2")]] void loop_avx2(uint64_t count) {
  BLINDFUSE_CHAINS(10, __m256i, __m256i, multiply_add_256);
}
#elif defined(__aarch64__)
#define BLINDFUSE_REGISTER(x) "+w"(x)
[[gnu::target("arch=armv8.2-a+dotprod")]] void loop_neondot(uint64_t count) {
  BLINDFUSE_CHAINS(20, int32x4_t, int8x16_t, vdotq_s32);
}
#endif

// Multiply-adds of an instruction: a 512-bit vpdpbusd has 64 products of bytes, four of which make
// one product of a word; vpmaddwd has two of 16-bit numbers for one of a word.
struct Loop {
  std::string_view kernel;
  void (*run)(uint64_t count);
  uint64_t products;  // of one round
};
constexpr std::array kLoops = {
#if defined(__x86_64__)
    Loop{"amx", loop_amx, 4 * 16 * 16 * 16},
    Loop{"avx512vnni", loop_avx512vnni, 20 * 16},
    Loop{"avxvnni", loop_avxvnni, 10 * 8},
    Loop{"avx512", loop_avx512, 20 * 16},
    Loop{"avx2", loop_avx2, 10 * 8},
#elif defined(__aarch64__)
    Loop{"neondot", loop_neondot, 20 * 4},
#endif
    Loop{"portable", nullptr, 0},  // whatever the compiler makes of it
};
}  // namespace

double read_seconds(const Matrix& matrix, WorkerThreads& threads) {
  static const Sum sum = widest_sum();
  std::vector<uint64_t> sums(threads.count() * 64);  // far enough apart for a cache line each
  const auto start = Clock::now();
  threads.run([&](unsigned index) {
    for (uint64_t i = 0; i < matrix.slab_count(); ++i) {
      const std::span<const int8_t> bytes = matrix.slab(i);
      const Share share = share_of(bytes.size(), 4096, index, threads.count());
      sums[index * 64] += sum(bytes.data() + share.first, share.last - share.first);
    }
  });
  const double seconds = seconds_since(start);
  asm volatile("" ::"r"(sums.data()) : "memory");
  return seconds;
}

double peak_multiply_adds(std::string_view kernel, WorkerThreads& threads) {
  const auto* const loop = std::ranges::find(kLoops, kernel, &Loop::kernel);
  if (loop == kLoops.end() || loop->run == nullptr) return 0;
  constexpr uint64_t kProducts = 3'200'000'000;  // some tens of milliseconds
  const uint64_t rounds = kProducts / loop->products;
  const auto start = Clock::now();
  threads.run([&](unsigned) { loop->run(rounds); });
  return static_cast<double>(rounds * loop->products * threads.count()) / seconds_since(start);
}

}  // namespace blindfuse::bench
