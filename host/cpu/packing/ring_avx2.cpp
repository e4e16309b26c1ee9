// Packing with AVX2: transforms on 8 lanes, sums by vpmuludq.
#include <immintrin.h>

#include "host/cpu/packing/packing_keys.h"
#include "host/cpu/packing/vector_ntt.h"
#include "src/arithmetic/packing_table.h"

namespace blindfuse {
namespace {

// Instead of the standard library's function, which the linker could take from here for a processor
// without AVX2.
size_t at_most(size_t count, size_t most) { return count < most ? count : most; }

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
  static Vector sum(Vector a, Vector b) { return _mm256_add_epi32(a, b); }
  static Vector difference(Vector a, Vector b) { return _mm256_sub_epi32(a, b); }
  static Vector lesser(Vector a, Vector b) { return _mm256_min_epu32(a, b); }
  static Vector add_where_less(Vector x, Vector a, Vector b, Vector y) {
    // a < b: the greater of both is not a.
    const Vector not_less = _mm256_cmpeq_epi32(_mm256_max_epu32(a, b), a);
    return _mm256_add_epi32(x, _mm256_andnot_si256(not_less, y));
  }
  static Vector lower_product(Vector a, Vector b) { return _mm256_mullo_epi32(a, b); }
  // Within 128 bits, the products of the even lanes and then those of the odd ones. A difference of
  // two products is put in order once; each product by itself would take a shift and a blend.
  static Vector upper_product(Vector a, Vector b) {
    const Vector even = _mm256_mul_epu32(a, b);
    const Vector odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), _mm256_srli_epi64(b, 32));
    return _mm256_castps_si256(
        _mm256_shuffle_ps(_mm256_castsi256_ps(even), _mm256_castsi256_ps(odd), 0xdd));
  }
  static Vector in_order(Vector x) { return _mm256_shuffle_epi32(x, 0xd8); }

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

// Adds the products of the lower halves of lanes of 64 bits: whole to `low`, modulo 2^64, and their
// upper halves alone to `high`. In assembly, as GCC 12 otherwise moves sums from register to
// register and to memory where they take all registers but four.
[[gnu::always_inline]] inline void add_product(__m256i& low, __m256i& high, __m256i words,
                                               const __m256i_u& keys) {
  __m256i product;
  asm("vpmuludq %4, %3, %2\n\t"
      "vpaddq %2, %0, %0\n\t"
      "vpsrlq $32, %2, %2\n\t"
      "vpaddq %2, %1, %1"
      : "+x"(low), "+x"(high), "=&x"(product)
      : "x"(words), "m"(keys));
}

// Sums of a group of points for some queries. The 16 points of a line are four quarters: the even
// ones of the first eight, the odd ones, and the same of the last eight. The odd words of a line
// are shifted down once for several queries. A key is read from the first point of a quarter on, so
// that its words are never moved.
//
// Roofline: four products take four instructions, a vpmuludq, two vpaddq and a vpsrlq. If the
// table's words were cut to 16 bits, so that sums of products fit 64 bits, two vpmuludq and two
// vpaddq would take their place; on a Zen 3 these are slower (bench/results/NOTEBOOK.md).
class GroupSums {
 public:
  static constexpr size_t kQueriesMax = 36;
  // The last points of a rotated half are read with the odd ones of eight.
  static_assert(PackingKeys::kHalfWords >= ring::kOrbit + kPointsTogether);

  GroupSums(const GroupSumArgs& args, size_t first_query, size_t query_count)
      : keys_(args.keys + first_query), query_count_(query_count) {
    for (size_t i = 0; i < query_count * kQuarters; ++i) {
      low_[i] = high_[i] = _mm256_setzero_si256();
    }
    const size_t half = args.point / ring::kOrbit * PackingKeys::kHalfWords;
    const uint32_t* line = args.table;
    for (size_t number = 0; number < kKeySwitches;) {
      // Every switch reads a key from one word less on than the switch before it.
      const size_t place = (args.point + key_switch_to(number).power) % ring::kOrbit;
      const size_t count = at_most(at_most(kSwitchesTogether, kKeySwitches - number), place + 1);
      add_switches({line, half + place, count});
      line += count * kSwitchWords;
      number += count;
    }
  }

  // The sums, reduced, 16 for each query.
  void write(uint32_t* sums) const {
    using ring::kPackingModulus;
    constexpr uint64_t kTwo32 = (uint64_t{1} << 32) % kPackingModulus;
    for (size_t i = 0; i < query_count_ * kQuarters; ++i) {
      alignas(32) uint64_t low[4];
      alignas(32) uint64_t high[4];
      _mm256_store_si256(reinterpret_cast<__m256i*>(low), low_[i]);
      _mm256_store_si256(reinterpret_cast<__m256i*>(high), high_[i]);
      uint32_t* quarter = sums + i / 2 * 8 + i % 2;
      for (size_t k = 0; k < 4; ++k) {
        // What is left are 3069 lower halves, below 2^44.
        const uint64_t lower = low[k] - (high[k] << 32);
        quarter[2 * k] =
            static_cast<uint32_t>((high[k] % kPackingModulus * kTwo32 + lower) % kPackingModulus);
      }
    }
  }

 private:
  static constexpr size_t kQuarters = 4;
  static constexpr size_t kSwitchWords = ring::kDigits * kPointsTogether;
  // Their lines (9 KiB) stay in the first-level cache for all queries while the next ones come, and
  // six parts of keys (4.5 KiB) for all quarters.
  static constexpr size_t kSwitchesTogether = 48;

  // The lines that are fetched with a switch: the share of kTogether quarters in the next ones.
  template <size_t kTogether>
  static constexpr size_t kFetchedWithASwitch =
      (kTogether * ring::kDigits + kQuarters - 1) / kQuarters;

  // Key switches, one after another.
  struct Switches {
    const uint32_t* line;  // the first
    size_t place;          // of the first in a key; that of the next is one less
    size_t count;
  };

  // As many queries and quarters at a time as have their sums in twelve registers.
  void add_switches(const Switches& switches) {
    if (query_count_ == 1) return add_quarters<1, 4>(switches, 0);
    size_t q = 0;
    for (; q + 6 <= query_count_; q += 6) add_quarters<6, 1>(switches, q);
    switch (query_count_ - q) {
      case 1:
        return add_quarters<1, 2>(switches, q);
      case 2:
        return add_quarters<2, 2>(switches, q);
      case 3:
        return add_quarters<3, 2>(switches, q);
      case 4:
        return add_quarters<4, 1>(switches, q);
      case 5:
        return add_quarters<5, 1>(switches, q);
      default:
        return;
    }
  }

  template <size_t kQueries, size_t kTogether>
  void add_quarters(const Switches& switches, size_t q) {
    constexpr size_t kStep = kTogether == 1 ? 2 : kTogether;
    for (size_t quarter = 0; quarter < kQuarters; quarter += kStep) {
      add<kQueries, kTogether, 0>(switches, q, quarter);
      if constexpr (kTogether == 1) add<kQueries, kTogether, 1>(switches, q, quarter + 1);
    }
  }

  // kTogether quarters from `quarter` on, which is odd if kOdd is 1.
  template <size_t kQueries, size_t kTogether, size_t kOdd>
  void add(const Switches& switches, size_t q, size_t quarter) {
    __m256i low[kQueries][kTogether];
    __m256i high[kQueries][kTogether];
    const uint32_t* keys[kQueries];
#pragma GCC unroll 6
    for (size_t i = 0; i < kQueries; ++i) {
      keys[i] = keys_[q + i] + switches.place + quarter / 2 * 8 + kOdd;
#pragma GCC unroll 4
      for (size_t z = 0; z < kTogether; ++z) {
        low[i][z] = low_[(q + i) * kQuarters + quarter + z];
        high[i][z] = high_[(q + i) * kQuarters + quarter + z];
      }
    }
    const uint32_t* line = switches.line + quarter / 2 * 8;
    // The next lines are fetched meanwhile, a part of them with every quarter: processors do not
    // prefetch across pages by themselves. A prefetch after the end of a table is harmless.
    const uint32_t* ahead = switches.line + kSwitchesTogether * kSwitchWords +
                            quarter * (kSwitchesTogether * kSwitchWords / kQuarters);
    for (std::ptrdiff_t n = 0; n != -static_cast<std::ptrdiff_t>(switches.count); --n) {
#pragma GCC unroll 3
      for (size_t i = 0; i < kFetchedWithASwitch<kTogether>; ++i, ahead += kPointsTogether) {
        _mm_prefetch(reinterpret_cast<const char*>(ahead), _MM_HINT_T0);
      }
#pragma GCC unroll 3
      for (size_t k = 0; k < ring::kDigits; ++k, line += kPointsTogether) {
        __m256i words[kTogether];
#pragma GCC unroll 4
        for (size_t z = 0; z < kTogether; ++z) {
          words[z] = load_words(line + z / 2 * 8);
          if ((z + kOdd) % 2 == 1) words[z] = _mm256_srli_epi64(words[z], 32);
        }
#pragma GCC unroll 6
        for (size_t i = 0; i < kQueries; ++i) {
          const uint32_t* key = keys[i] + n + 2 * PackingKeys::kHalfWords * k;
#pragma GCC unroll 4
          for (size_t z = 0; z < kTogether; ++z) {
            add_product(low[i][z], high[i][z], words[z],
                        *reinterpret_cast<const __m256i_u*>(key + z / 2 * 8 + z % 2));
          }
        }
      }
    }
#pragma GCC unroll 6
    for (size_t i = 0; i < kQueries; ++i) {
#pragma GCC unroll 4
      for (size_t z = 0; z < kTogether; ++z) {
        low_[(q + i) * kQuarters + quarter + z] = low[i][z];
        high_[(q + i) * kQuarters + quarter + z] = high[i][z];
      }
    }
  }

  const uint32_t* const* const keys_;
  const size_t query_count_;
  __m256i low_[kQueriesMax * kQuarters];
  __m256i high_[kQueriesMax * kQuarters];
};

// Shares of a batch, as even as they can be: each reads the table once.
void sum_group(const GroupSumArgs& args) {
  constexpr size_t kMax = GroupSums::kQueriesMax;
  const size_t shares = (args.query_count + kMax - 1) / kMax;
  for (size_t i = 0; i < shares; ++i) {
    const size_t first = args.query_count * i / shares;
    const size_t last = args.query_count * (i + 1) / shares;
    GroupSums(args, first, last - first).write(args.sums + first * kPointsTogether);
  }
}

}  // namespace

const RingKernel kAvx2RingKernel = VectorNtt<Avx2>::kernel("avx2", sum_group);

}  // namespace blindfuse
