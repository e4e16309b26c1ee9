// Packing with AVX-512: transforms on 16 lanes, sums by vpmadd52.
#include <immintrin.h>

#include "host/cpu/packing/group_sums.h"
#include "host/cpu/packing/vector_ntt.h"

namespace blindfuse {
namespace {

struct Avx512 {
  static constexpr size_t kLanes = 16;
  using Vector = __m512i;

  static Vector load(const uint32_t* words) { return _mm512_loadu_si512(words); }
  static void store(uint32_t* words, Vector x) { _mm512_storeu_si512(words, x); }
  static Vector broadcast(uint32_t x) { return _mm512_set1_epi32(static_cast<int>(x)); }
  static void permute(const uint32_t* from, const int32_t* places, uint32_t* to, size_t count) {
    for (size_t i = 0; i < count; i += kLanes) {
      store(to + i, _mm512_i32gather_epi32(_mm512_loadu_si512(places + i), from, 4));
    }
  }

  template <unsigned kBits>
  static Vector shift_down(Vector x) {
    return _mm512_srai_epi32(x, kBits);
  }
  template <unsigned kBits>
  static Vector shift_up(Vector x) {
    return _mm512_slli_epi32(x, kBits);
  }
  static Vector both(Vector a, Vector b) { return _mm512_and_si512(a, b); }
  static Vector sum(Vector a, Vector b) { return _mm512_add_epi32(a, b); }
  static Vector difference(Vector a, Vector b) { return _mm512_sub_epi32(a, b); }
  static Vector lesser(Vector a, Vector b) { return _mm512_min_epu32(a, b); }
  static Vector add_where_less(Vector x, Vector a, Vector b, Vector y) {
    return _mm512_mask_add_epi32(x, _mm512_cmplt_epu32_mask(a, b), x, y);
  }
  static Vector lower_product(Vector a, Vector b) { return _mm512_mullo_epi32(a, b); }
  static Vector upper_product(Vector a, Vector b) {
    const Vector even = _mm512_srli_epi64(_mm512_mul_epu32(a, b), 32);
    const Vector odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), _mm512_srli_epi64(b, 32));
    return _mm512_mask_blend_epi32(0xaaaa, even, odd);
  }
  static Vector in_order(Vector x) { return x; }

  static void transpose(Vector* rows) {
    Vector t[16];
#pragma GCC unroll 8
    for (size_t i = 0; i < 16; i += 2) {
      t[i] = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
      t[i + 1] = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
    }
#pragma GCC unroll 4
    for (size_t i = 0; i < 16; i += 4) {
      rows[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
      rows[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
      rows[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
      rows[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    // Now squares of four; what is left is to transpose these, four by four.
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; ++i) {
      t[i] = _mm512_shuffle_i32x4(rows[i], rows[i + 4], 0x88);
      t[i + 4] = _mm512_shuffle_i32x4(rows[i], rows[i + 4], 0xdd);
      t[i + 8] = _mm512_shuffle_i32x4(rows[i + 8], rows[i + 12], 0x88);
      t[i + 12] = _mm512_shuffle_i32x4(rows[i + 8], rows[i + 12], 0xdd);
    }
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; ++i) {
      rows[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
      rows[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd);
      rows[i + 4] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88);
      rows[i + 12] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xdd);
    }
  }
};

// Of one query, in lanes of 64 bits: the lower and the upper 52 bits of products, of even points
// and of odd ones. 3069 numbers below 2^52 stay below 2^64.
struct Sums {
  __m512i low[2], high[2];

  Sums() {
    for (size_t i = 0; i < 2; ++i) low[i] = high[i] = _mm512_setzero_si512();
  }
  void add(const __m512i* line, __m512i key) {
    const __m512i odd = _mm512_srli_epi64(key, 32);
    const __m512i even = _mm512_and_si512(key, _mm512_set1_epi64(0xffffffff));
    low[0] = _mm512_madd52lo_epu64(low[0], line[0], even);
    high[0] = _mm512_madd52hi_epu64(high[0], line[0], even);
    low[1] = _mm512_madd52lo_epu64(low[1], line[1], odd);
    high[1] = _mm512_madd52hi_epu64(high[1], line[1], odd);
  }
  // The 16 sums, reduced.
  void write(uint32_t* sums) const {
    using ring::kPackingModulus;
    constexpr uint64_t kTwo52 = (uint64_t{1} << 52) % kPackingModulus;
    for (size_t odd = 0; odd < 2; ++odd) {
      alignas(64) uint64_t lower[8];
      alignas(64) uint64_t upper[8];
      _mm512_store_si512(lower, low[odd]);
      _mm512_store_si512(upper, high[odd]);
      for (size_t i = 0; i < 8; ++i) {
        const uint64_t both =
            upper[i] % kPackingModulus * kTwo52 % kPackingModulus + lower[i] % kPackingModulus;
        sums[2 * i + odd] = static_cast<uint32_t>(both % kPackingModulus);
      }
    }
  }
};

// A table is asked for 32 lines before it is used, which no processor does by itself across pages:
// a tenth faster for one query (bench/results/NOTEBOOK.md). A prefetch after its end touches
// nothing.
constexpr size_t kAheadWords = 32 * kPointsTogether;

template <size_t kQueries>
void sum_queries(const GroupSumArgs& args, size_t first) {
  Sums sums[kQueries];
  const uint32_t* keys[kQueries];
  for (size_t q = 0; q < kQueries; ++q) keys[q] = args.keys[first + q];
  for_each_line(args.table, args.point, [&](const uint32_t* words, size_t place) {
    _mm_prefetch(reinterpret_cast<const char*>(words + kAheadWords), _MM_HINT_T0);
    const __m512i line = _mm512_loadu_si512(words);
    const __m512i halves[2] = {_mm512_and_si512(line, _mm512_set1_epi64(0xffffffff)),
                               _mm512_srli_epi64(line, 32)};
#pragma GCC unroll 4
    for (size_t q = 0; q < kQueries; ++q) {
      sums[q].add(halves, _mm512_loadu_si512(keys[q] + place));
    }
  });
  for (size_t q = 0; q < kQueries; ++q) sums[q].write(args.sums + (first + q) * kPointsTogether);
}

void sum_group(const GroupSumArgs& args) {
  size_t query = 0;
  for (; query + 4 <= args.query_count; query += 4) sum_queries<4>(args, query);
  for (; query < args.query_count; ++query) sum_queries<1>(args, query);
}

}  // namespace

const RingKernel kAvx512RingKernel = VectorNtt<Avx512>::kernel("avx512", sum_group);

}  // namespace blindfuse
