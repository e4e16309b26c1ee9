// Packing with AVX2: transforms on 8 lanes, sums by vpmuludq.
#include <immintrin.h>

#include <algorithm>

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
  // With vpgatherdd a transform takes 3 to 5 % longer on a Zen 3.
  static void permute(const uint32_t* from, const int32_t* places, uint32_t* to, size_t count) {
    for (size_t i = 0; i < count; ++i) to[i] = from[places[i]];
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

// One query after another. A group of the table stays in the second-level cache.
void sum_single_queries(const GroupSumArgs& args, size_t first) {
  for (size_t query = first; query < args.query_count; ++query) {
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

// Sums for several queries, from a table cut into halves of 16 bits: 3069 products of 48 bits stay
// below 2^60, and need not be cut themselves. Lines are cut once, a few at a time, for all queries
// of a block. With 12 queries and more it is 1.2 times as fast as single queries
// (docs/BENCHMARKS_DETAILS.md).
class CutSums {
 public:
  static constexpr size_t kQueriesMax = 33;

  CutSums(const GroupSumArgs& args, size_t first, size_t count)
      : args_(args), first_(first), count_(count) {
    for (size_t i = 0; i < count * kVectors; ++i) sums_[i] = _mm256_setzero_si256();
    size_t cut_count = 0;
    for_each_line(args.table, args.point, [&](const uint32_t* line, size_t place) {
      cut(line, place, cut_count++);
      if (cut_count < kLines) return;
      add_lines(cut_count);
      cut_count = 0;
    });
    add_lines(cut_count);
  }

  void write() const {
    using ring::kPackingModulus;
    for (size_t q = 0; q < count_; ++q) {
      uint32_t* sums = args_.sums + (first_ + q) * kPointsTogether;
      for (size_t half = 0; half < 2; ++half) {
        alignas(32) uint64_t found[kCuts][4];
        for (size_t cut = 0; cut < kCuts; ++cut) {
          _mm256_store_si256(reinterpret_cast<__m256i*>(found[cut]),
                             sums_[(q * 2 + half) * kCuts + cut]);
        }
        for (size_t i = 0; i < 8; ++i) {
          const uint64_t lower = found[i % 2 * 2][i / 2] % kPackingModulus;
          const uint64_t upper = found[i % 2 * 2 + 1][i / 2] % kPackingModulus;
          sums[8 * half + i] = static_cast<uint32_t>((lower + (upper << 16)) % kPackingModulus);
        }
      }
    }
  }

 private:
  // Of 8 points: the lower and the upper 16 bits of the even ones, and of the odd ones.
  static constexpr size_t kCuts = 4;
  static constexpr size_t kVectors = 2 * kCuts;  // of 16 points
  static constexpr size_t kLines = 48;           // cut, 12 KiB

  void cut(const uint32_t* line, size_t place, size_t number) {
    const __m256i low = _mm256_set1_epi64x(0xffff);
    places_[number] = place;
    for (size_t half = 0; half < 2; ++half) {
      const __m256i words = load_words(line + 8 * half);
      __m256i* cuts = lines_ + (half * kLines + number) * kCuts;
      cuts[0] = _mm256_and_si256(words, low);
      cuts[1] = _mm256_and_si256(_mm256_srli_epi64(words, 16), low);
      cuts[2] = _mm256_and_si256(_mm256_srli_epi64(words, 32), low);
      cuts[3] = _mm256_srli_epi64(words, 48);
    }
  }

  void add_lines(size_t count) {
    size_t q = 0;
    for (; q + 3 <= count_; q += 3) add_lines_of<3>(q, count);
    if (q + 2 == count_) {
      add_lines_of<2>(q, count);
    } else if (q < count_) {
      add_lines_of<1>(q, count);
    }
  }

  // Of three queries at a time, so that their sums stay in registers.
  template <size_t kQueries>
  void add_lines_of(size_t q, size_t count) {
    for (size_t half = 0; half < 2; ++half) {
      __m256i sums[kQueries][kCuts];
      __m256i* kept[kQueries];
      const uint32_t* keys[kQueries];
#pragma GCC unroll 3
      for (size_t i = 0; i < kQueries; ++i) {
        kept[i] = sums_ + ((q + i) * 2 + half) * kCuts;
        keys[i] = args_.keys[first_ + q + i] + 8 * half;
#pragma GCC unroll 4
        for (size_t cut = 0; cut < kCuts; ++cut) sums[i][cut] = kept[i][cut];
      }
      for (size_t line = 0; line < count; ++line) {
        const __m256i* cuts = lines_ + (half * kLines + line) * kCuts;
        const size_t place = places_[line];
#pragma GCC unroll 3
        for (size_t i = 0; i < kQueries; ++i) {
          const __m256i even = load_words(keys[i] + place);
          const __m256i odd = _mm256_srli_epi64(even, 32);
          sums[i][0] = _mm256_add_epi64(sums[i][0], _mm256_mul_epu32(even, cuts[0]));
          sums[i][1] = _mm256_add_epi64(sums[i][1], _mm256_mul_epu32(even, cuts[1]));
          sums[i][2] = _mm256_add_epi64(sums[i][2], _mm256_mul_epu32(odd, cuts[2]));
          sums[i][3] = _mm256_add_epi64(sums[i][3], _mm256_mul_epu32(odd, cuts[3]));
        }
      }
#pragma GCC unroll 3
      for (size_t i = 0; i < kQueries; ++i) {
#pragma GCC unroll 4
        for (size_t cut = 0; cut < kCuts; ++cut) kept[i][cut] = sums[i][cut];
      }
    }
  }

  const GroupSumArgs& args_;
  const size_t first_, count_;
  __m256i sums_[kQueriesMax * kVectors];
  __m256i lines_[2 * kLines * kCuts];
  size_t places_[kLines];
};

// Fewer queries than these are not worth cutting a table for.
constexpr size_t kCutQueriesMin = 8;

void sum_group(const GroupSumArgs& args) {
  size_t query = 0;
  while (args.query_count - query >= kCutQueriesMin) {
    const size_t count = std::min(CutSums::kQueriesMax, args.query_count - query);
    CutSums(args, query, count).write();
    query += count;
  }
  sum_single_queries(args, query);
}

}  // namespace

const RingKernel kAvx2RingKernel = VectorNtt<Avx2>::kernel("avx2", sum_group);

}  // namespace blindfuse
