// u32 x i8 with AVX2: a word is two signed 16-bit numbers, low + 2^16 high modulo 2^32, and
// vpmaddwd multiplies sixteen of them with sixteen widened bytes and adds pairs. A pair's sum is at
// most 2^23, so nothing saturates; vpmaddubsw would, at 2^15.
//
// Roofline: 8 multiply-adds for a vpmaddwd and a vpaddd, and half as many instructions as vpmulld
// takes where that is two (Intel). Sixteen registers hold a tile of 2 queries x 2 columns.
#include <immintrin.h>

#include "host/cpu/scan/multiply_tiles.h"

namespace blindfuse {
namespace {

const __m256i* vectors(const uint8_t* bytes) { return reinterpret_cast<const __m256i*>(bytes); }

struct Unit {
  static constexpr size_t kQueries = 2;
  static constexpr size_t kColumns = 2;

  template <size_t Q, size_t C>
  struct Sums {
    __m256i low[Q][C];
    __m256i high[Q][C];

    Sums() {
      for (size_t i = 0; i < Q; ++i) {
        for (size_t j = 0; j < C; ++j) low[i][j] = high[i][j] = _mm256_setzero_si256();
      }
    }

    void add(const uint8_t* const* queries, size_t group, const int8_t* columns) {
      for (size_t part = 0; part < 4; ++part) {
        __m256i bytes[C];
        for (size_t j = 0; j < C; ++j) {
          bytes[j] = _mm256_cvtepi8_epi16(
              _mm_load_si128(reinterpret_cast<const __m128i*>(columns + j * kGroupRows) + part));
        }
        for (size_t i = 0; i < Q; ++i) {
          const __m256i* query = vectors(queries[i] + group * kGroupBytes) + part;
          const __m256i lows = _mm256_load_si256(query);
          const __m256i highs = _mm256_load_si256(query + 4);
          for (size_t j = 0; j < C; ++j) {
            low[i][j] = _mm256_add_epi32(low[i][j], _mm256_madd_epi16(lows, bytes[j]));
            BLINDFUSE_KEEP_IN_REGISTER(low[i][j]);
            high[i][j] = _mm256_add_epi32(high[i][j], _mm256_madd_epi16(highs, bytes[j]));
            BLINDFUSE_KEEP_IN_REGISTER(high[i][j]);
          }
        }
      }
    }

    void add_to(uint32_t* const* products) const {
      for (size_t i = 0; i < Q; ++i) {
        for (size_t j = 0; j < C; ++j) {
          const __m256i all = _mm256_add_epi32(low[i][j], _mm256_slli_epi32(high[i][j], 16));
          __m128i four =
              _mm_add_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
          four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
          four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0xb1));
          products[i][j] += static_cast<uint32_t>(_mm_cvtsi128_si32(four));
        }
      }
    }
  };
};

// 64 low halves, then 64 high ones.
void cut(const uint32_t* words, size_t group_stride, size_t group_count, uint8_t* limbs) {
  for (size_t g = 0; g < group_count; ++g) {
    const uint32_t* from = words + g * group_stride;
    auto* to = reinterpret_cast<int16_t*>(limbs + g * kGroupBytes);
    for (size_t r = 0; r < kGroupRows; ++r) {
      to[r] = static_cast<int16_t>(from[r]);
      // What the low half lacks for being signed, the high one has more.
      to[kGroupRows + r] = static_cast<int16_t>((from[r] + 0x8000) >> 16);
    }
  }
}

bool runs_here() { return __builtin_cpu_supports("avx2") != 0; }

}  // namespace

constinit const MultiplyKernel kMultiplyAvx2{
    "avx2", runs_here, cut, [](const MultiplyArgs& args) { multiply_tiles<Unit>(args); }};

}  // namespace blindfuse
