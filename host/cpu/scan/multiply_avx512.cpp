// u32 x i8 with AVX-512: bytes widened to 32 bits, vpmulld and vpaddd on 16 lanes.
//
// Roofline: 16 multiply-adds for a vpmulld (one a cycle on Zen 4 and 5, half of that on Intel) and
// a vpaddd; a tile of 4 queries x 6 columns balances loads and widening with the multiplier.
#include <immintrin.h>

#include "host/cpu/scan/multiply_tiles.h"

namespace blindfuse {
namespace {

// _mm512_reduce_add_epi32 would not do: GCC 12 writes that as additions of int, whose overflow is
// undefined.
uint32_t sum_of(__m512i lanes) {
  const __m256i eight =
      _mm256_add_epi32(_mm512_castsi512_si256(lanes), _mm512_extracti64x4_epi64(lanes, 1));
  __m128i four = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
  four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0xb1));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(four));
}

struct Unit {
  static constexpr size_t kQueries = 4;
  static constexpr size_t kColumns = 6;
  static constexpr size_t kAheadBytes = kUsualAheadBytes;

  template <size_t Q, size_t C>
  struct Sums {
    __m512i sums[Q][C];

    Sums() {
#pragma GCC unroll 8
      for (auto& row : sums) {
#pragma GCC unroll 8
        for (__m512i& sum : row) sum = _mm512_setzero_si512();
      }
    }

    void add(const uint8_t* const* queries, size_t group, const int8_t* columns) {
#pragma GCC unroll 8
      for (size_t part = 0; part < 4; ++part) {
        __m512i words[Q];
#pragma GCC unroll 8
        for (size_t i = 0; i < Q; ++i) {
          words[i] = _mm512_load_si512(queries[i] + group * kGroupBytes + 64 * part);
        }
#pragma GCC unroll 8
        for (size_t j = 0; j < C; ++j) {
          const __m512i bytes = _mm512_cvtepi8_epi32(
              _mm_load_si128(reinterpret_cast<const __m128i*>(columns + j * kGroupRows) + part));
#pragma GCC unroll 8
          for (size_t i = 0; i < Q; ++i) {
            sums[i][j] = _mm512_add_epi32(sums[i][j], _mm512_mullo_epi32(words[i], bytes));
            BLINDFUSE_KEEP_IN_REGISTER(sums[i][j]);
          }
        }
      }
    }

    void add_to(uint32_t* const* products) const {
#pragma GCC unroll 8
      for (size_t i = 0; i < Q; ++i) {
#pragma GCC unroll 8
        for (size_t j = 0; j < C; ++j) products[i][j] += sum_of(sums[i][j]);
      }
    }
  };
};

void cut(const uint32_t* words, size_t group_stride, size_t group_count, uint8_t* limbs) {
  for (size_t g = 0; g < group_count; ++g) {
    for (size_t i = 0; i < 4; ++i) {
      _mm512_store_si512(limbs + g * kGroupBytes + 64 * i,
                         _mm512_loadu_si512(words + g * group_stride + 16 * i));
    }
  }
}

bool runs_here() {
  return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0;
}

}  // namespace

constinit const MultiplyKernel kMultiplyAvx512{
    "avx512", runs_here, cut, [](const MultiplyArgs& args) { multiply_tiles<Unit>(args); }};

}  // namespace blindfuse
