// Packing with AVX2: transforms on 8 lanes, sums by vpmuludq.
#include <immintrin.h>

#include "host/cpu/packing/group_sums.h"
#include "host/cpu/packing/vector_ntt.h"

namespace blindfuse {
namespace {

__m256i load_words(const uint32_t* words) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(words));
}

struct Avx2 {
  static constexpr size_t kLanes = 8;
  using Vector = __m256i;

  static Vector load(const uint32_t* words) { return load_words(words); }
  static void store(uint32_t* words, Vector x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(words), x);
  }
  static Vector broadcast(uint32_t x) { return _mm256_set1_epi32(static_cast<int>(x)); }
  static Vector gather(const uint32_t* memory, const int32_t* places) {
    return _mm256_i32gather_epi32(reinterpret_cast<const int*>(memory),
                                  _mm256_loadu_si256(reinterpret_cast<const __m256i*>(places)), 4);
  }

  template <unsigned kBits>
  static Vector shift_down(Vector x) {
    return _mm256_srai_epi32(x, kBits);
  }
  template <unsigned kBits>
  static Vector shift_up(Vector x) {
    return _mm256_slli_epi32(x, kBits);
  }
  static Vector both(Vector a, Vector b) { return _mm256_and_si256(a, b); }
  static Vector difference(Vector a, Vector b) { return _mm256_sub_epi32(a, b); }
  static Vector add_where_less(Vector x, Vector a, Vector b, Vector y) {
    // a < b: the greater of both is not a.
    const Vector not_less = _mm256_cmpeq_epi32(_mm256_max_epu32(a, b), a);
    return _mm256_add_epi32(x, _mm256_andnot_si256(not_less, y));
  }
  static Vector lower_product(Vector a, Vector b) { return _mm256_mullo_epi32(a, b); }
  static Vector upper_product(Vector a, Vector b) {
    const Vector even = _mm256_srli_epi64(_mm256_mul_epu32(a, b), 32);
    const Vector odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), _mm256_srli_epi64(b, 32));
    return _mm256_blend_epi32(even, odd, 0xaa);
  }

  static void transpose(Vector* rows) {
    Vector t[8];
#pragma GCC unroll 4
    for (size_t i = 0; i < 8; i += 2) {
      t[i] = _mm256_unpacklo_epi32(rows[i], rows[i + 1]);
      t[i + 1] = _mm256_unpackhi_epi32(rows[i], rows[i + 1]);
    }
#pragma GCC unroll 2
    for (size_t i = 0; i < 8; i += 4) {
      rows[i] = _mm256_unpacklo_epi64(t[i], t[i + 2]);
      rows[i + 1] = _mm256_unpackhi_epi64(t[i], t[i + 2]);
      rows[i + 2] = _mm256_unpacklo_epi64(t[i + 1], t[i + 3]);
      rows[i + 3] = _mm256_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; ++i) {
      t[i] = _mm256_permute2x128_si256(rows[i], rows[i + 4], 0x20);
      t[i + 4] = _mm256_permute2x128_si256(rows[i], rows[i + 4], 0x31);
    }
#pragma GCC unroll 8
    for (size_t i = 0; i < 8; ++i) rows[i] = t[i];
  }
};

// Of one query and 8 points, in lanes of 64 bits: the lower and upper halves of products.
struct Sums {
  __m256i low[2], high[2];

  Sums() {
    for (size_t i = 0; i < 2; ++i) low[i] = high[i] = _mm256_setzero_si256();
  }
  void add(__m256i line, __m256i key) {
    add_half(_mm256_mul_epu32(line, key), 0);
    add_half(_mm256_mul_epu32(_mm256_srli_epi64(line, 32), _mm256_srli_epi64(key, 32)), 1);
  }
  void add_half(__m256i product, size_t odd) {
    low[odd] =
        _mm256_add_epi64(low[odd], _mm256_and_si256(product, _mm256_set1_epi64x(0xffffffff)));
    high[odd] = _mm256_add_epi64(high[odd], _mm256_srli_epi64(product, 32));
  }
  void write(uint32_t* sums) const {
    using ring::kPackingModulus;
    constexpr uint64_t kTwo32 = (uint64_t{1} << 32) % kPackingModulus;
    for (size_t odd = 0; odd < 2; ++odd) {
      alignas(32) uint64_t lower[4];
      alignas(32) uint64_t upper[4];
      _mm256_store_si256(reinterpret_cast<__m256i*>(lower), low[odd]);
      _mm256_store_si256(reinterpret_cast<__m256i*>(upper), high[odd]);
      for (size_t i = 0; i < 4; ++i) {
        const uint64_t both =
            upper[i] % kPackingModulus * kTwo32 % kPackingModulus + lower[i] % kPackingModulus;
        sums[2 * i + odd] = static_cast<uint32_t>(both % kPackingModulus);
      }
    }
  }
};

void sum_group(const GroupSumArgs& args) {
  for (size_t query = 0; query < args.query_count; ++query) {
    const uint32_t* keys = args.keys[query];
    Sums sums[2];
    for_each_line(args.table, args.point, [&](const uint32_t* line, size_t place) {
#pragma GCC unroll 2
      for (size_t i = 0; i < 2; ++i) {
        sums[i].add(load_words(line + 8 * i), load_words(keys + place + 8 * i));
      }
    });
    for (size_t i = 0; i < 2; ++i) sums[i].write(args.sums + query * kPointsTogether + 8 * i);
  }
}

}  // namespace

const RingKernel kAvx2RingKernel = VectorNtt<Avx2>::kernel("avx2", sum_group);

}  // namespace blindfuse
