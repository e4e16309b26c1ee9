// u32 x i8 with AVX-512 VNNI: a word is four bytes, and vpdpbusd multiplies 64 unsigned bytes with
// 64 signed ones and adds fours of them to sixteen sums. Never vpdpbusds, which
// saturates, though a sum over a block stays far from it. Only when the four are put together, 2^8k
// times each, does anything wrap: modulo 2^32, as it should.
//
// Roofline: 16 multiply-adds an instruction, two instructions a cycle on Zen 5 and one on Zen 4.
// A tile of one query and six columns loads ten vectors for 24 instructions; a query's bytes stay
// in the nearest cache, or stream from the second one, while six columns pass.
#include <immintrin.h>

#include "host/cpu/scan/multiply_tiles.h"

namespace blindfuse {
namespace {

// Returns four sums, each of four 128-bit vectors of four.
__m128i sums_of_four(__m128i a, __m128i b, __m128i c, __m128i d) {
  return _mm_hadd_epi32(_mm_hadd_epi32(a, b), _mm_hadd_epi32(c, d));
}

__m128i quarter(__m512i lanes) {
  const __m256i half =
      _mm256_add_epi32(_mm512_castsi512_si256(lanes), _mm512_extracti64x4_epi64(lanes, 1));
  return _mm_add_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}

struct Unit {
  static constexpr size_t kQueries = 1;
  static constexpr size_t kColumns = 6;
  static constexpr size_t kAheadBytes = kUsualAheadBytes;

  template <size_t Q, size_t C>
  struct Sums {
    static_assert(Q == 1);
    __m512i limbs[C][4];

    Sums() {
#pragma GCC unroll 8
      for (size_t j = 0; j < C; ++j) {
#pragma GCC unroll 4
        for (size_t l = 0; l < 4; ++l) limbs[j][l] = _mm512_setzero_si512();
      }
    }

    void add(const uint8_t* const* queries, size_t group, const int8_t* columns) {
      const uint8_t* query = queries[0] + group * kGroupBytes;
      __m512i words[4];
#pragma GCC unroll 8
      for (size_t l = 0; l < 4; ++l) words[l] = _mm512_load_si512(query + 64 * l);
#pragma GCC unroll 8
      for (size_t j = 0; j < C; ++j) {
        __m512i bytes = _mm512_load_si512(columns + j * kGroupRows);
        BLINDFUSE_KEEP_IN_REGISTER(bytes);
#pragma GCC unroll 8
        for (size_t l = 0; l < 4; ++l) {
          limbs[j][l] = _mm512_dpbusd_epi32(limbs[j][l], words[l], bytes);
          BLINDFUSE_KEEP_IN_REGISTER(limbs[j][l]);
        }
      }
    }

    void add_to(uint32_t* const* products) const {
      constexpr size_t kFours = (C + 3) / 4;
      __m128i sums[4 * kFours] = {};
#pragma GCC unroll 8
      for (size_t j = 0; j < C; ++j) {
        const __m512i high = _mm512_add_epi32(limbs[j][2], _mm512_slli_epi32(limbs[j][3], 8));
        const __m512i low = _mm512_add_epi32(limbs[j][0], _mm512_slli_epi32(limbs[j][1], 8));
        sums[j] = quarter(_mm512_add_epi32(low, _mm512_slli_epi32(high, 16)));
      }
#pragma GCC unroll 8
      for (size_t k = 0; k < kFours; ++k) {
        alignas(16) uint32_t four[4];
        _mm_store_si128(
            reinterpret_cast<__m128i*>(four),
            sums_of_four(sums[4 * k], sums[4 * k + 1], sums[4 * k + 2], sums[4 * k + 3]));
        for (size_t i = 0; i < 4 && 4 * k + i < C; ++i) products[0][4 * k + i] += four[i];
      }
    }
  };
};

// The k-th bytes of 64 words become the k-th 64 bytes.
void cut(const uint32_t* words, size_t group_stride, size_t group_count, uint8_t* limbs) {
  // Every four words become their first bytes, then their second, and so on.
  const __m512i by_limb =
      _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  // Undoes the order that unpacking within 128 bits leaves behind.
  const __m512i in_order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  for (size_t g = 0; g < group_count; ++g) {
    const uint32_t* from = words + g * group_stride;
    __m512i v[4];
    for (size_t i = 0; i < 4; ++i) {
      v[i] = _mm512_shuffle_epi8(_mm512_loadu_si512(from + 16 * i), by_limb);
    }
    const __m512i low01 = _mm512_unpacklo_epi32(v[0], v[1]);
    const __m512i low23 = _mm512_unpacklo_epi32(v[2], v[3]);
    const __m512i high01 = _mm512_unpackhi_epi32(v[0], v[1]);
    const __m512i high23 = _mm512_unpackhi_epi32(v[2], v[3]);
    const __m512i rows[4] = {
        _mm512_unpacklo_epi64(low01, low23), _mm512_unpackhi_epi64(low01, low23),
        _mm512_unpacklo_epi64(high01, high23), _mm512_unpackhi_epi64(high01, high23)};
    for (size_t l = 0; l < 4; ++l) {
      _mm512_store_si512(limbs + g * kGroupBytes + 64 * l,
                         _mm512_permutexvar_epi32(in_order, rows[l]));
    }
  }
}

bool runs_here() {
  return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
         __builtin_cpu_supports("avx512vnni") != 0;
}

}  // namespace

constinit const MultiplyKernel kMultiplyAvx512Vnni{
    "avx512vnni", runs_here, cut, [](const MultiplyArgs& args) { multiply_tiles<Unit>(args); }};

}  // namespace blindfuse
