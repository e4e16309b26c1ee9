// u32 x i8 with AVX2: a word is two signed 16-bit numbers, low + 2^16 high modulo 2^32, and
// vpmaddwd multiplies sixteen of them with sixteen widened bytes and adds pairs. A pair's sum is at
// most 2^23, so nothing saturates; vpmaddubsw would, at 2^15.
//
// Roofline: 8 multiply-adds for a vpmaddwd and a vpaddd, and half as many instructions as vpmulld
// takes where that is two (Intel). Sixteen registers hold a tile of 3 queries x 2 columns. Widening
// its bytes takes two vector instructions of 26, loads aside, so that 0.92 of the peak is the most.
#include <immintrin.h>

#include "host/cpu/scan/multiply_tiles.h"

namespace blindfuse {
namespace {

const __m256i* vectors(const uint8_t* bytes) { return reinterpret_cast<const __m256i*>(bytes); }

// sum += the products of 16-bit numbers, added in pairs. In assembly, and in this order, as GCC 12
// otherwise moves sums from register to register, and to memory, where they take twelve of sixteen.
[[gnu::always_inline]] inline void add_products(__m256i& sum, __m256i a, __m256i b) {
  __m256i products;
  asm volatile(
      "vpmaddwd %3, %2, %1\n\t"
      "vpaddd %1, %0, %0"
      : "+x"(sum), "=&x"(products)
      : "x"(a), "x"(b));
}

// Takes one operand from memory, which the instruction reads itself.
[[gnu::always_inline]] inline void add_products(__m256i& sum, const __m256i* a, __m256i b) {
  __m256i products;
  asm volatile(
      "vpmaddwd %2, %3, %1\n\t"
      "vpaddd %1, %0, %0"
      : "+x"(sum), "=&x"(products)
      : "m"(*a), "x"(b));
}

// kLoadsHighs: the high halves of a query are loaded once for both columns, as the low ones are.
// Without it each multiplication reads them from memory by itself. That takes fewer instructions,
// which limit three queries and more (Zen 3 dispatches six a cycle), but more loads, which delay
// one query or two, for which memory is the limit.
template <bool kLoadsHighs>
struct Unit {
  static constexpr size_t kQueries = 2;
  static constexpr size_t kColumns = 2;
  // Processors that have nothing newer have 32 KiB of first-level cache.
  static constexpr size_t kAheadBytes = 8 * 1024;

  template <size_t Q, size_t C>
  struct Sums {
    __m256i low[Q][C];
    __m256i high[Q][C];

    Sums() {
#pragma GCC unroll 3
      for (size_t i = 0; i < Q; ++i) {
#pragma GCC unroll 2
        for (size_t j = 0; j < C; ++j) low[i][j] = high[i][j] = _mm256_setzero_si256();
      }
    }

    void add(const uint8_t* const* queries, size_t group, const int8_t* columns) {
#pragma GCC unroll 4
      for (size_t part = 0; part < 4; ++part) {
        __m256i bytes[C];
#pragma GCC unroll 2
        for (size_t j = 0; j < C; ++j) {
          bytes[j] = _mm256_cvtepi8_epi16(
              _mm_load_si128(reinterpret_cast<const __m128i*>(columns + j * kGroupRows) + part));
          BLINDFUSE_KEEP_IN_REGISTER(bytes[j]);
        }
#pragma GCC unroll 3
        for (size_t i = 0; i < Q; ++i) {
          const __m256i* query = vectors(queries[i] + group * kGroupBytes) + part;
          const __m256i lows = _mm256_load_si256(query);
#pragma GCC unroll 2
          for (size_t j = 0; j < C; ++j) add_products(low[i][j], lows, bytes[j]);
          if constexpr (kLoadsHighs) {
            const __m256i highs = _mm256_load_si256(query + 4);
#pragma GCC unroll 2
            for (size_t j = 0; j < C; ++j) add_products(high[i][j], highs, bytes[j]);
          } else {
#pragma GCC unroll 2
            for (size_t j = 0; j < C; ++j) add_products(high[i][j], query + 4, bytes[j]);
          }
        }
      }
    }

    void add_to(uint32_t* const* products) const {
#pragma GCC unroll 3
      for (size_t i = 0; i < Q; ++i) {
        __m256i words[C];
#pragma GCC unroll 2
        for (size_t j = 0; j < C; ++j) {
          words[j] = _mm256_add_epi32(low[i][j], _mm256_slli_epi32(high[i][j], 16));
        }
        // Lanes are added in fours, of one column or of two.
        const __m256i pairs = _mm256_hadd_epi32(words[0], words[C - 1]);
        const __m128i halves =
            _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
        const __m128i sums = _mm_hadd_epi32(halves, halves);
        products[i][0] += static_cast<uint32_t>(_mm_cvtsi128_si32(sums));
        if constexpr (C == 2) products[i][1] += static_cast<uint32_t>(_mm_extract_epi32(sums, 1));
      }
    }
  };
};

using FewQueriesUnit = Unit<true>;
using ManyQueriesUnit = Unit<false>;

// For three queries and for more than four, a run of 1024 rows of some tiles passes for three
// queries before it passes for the next three. So the words of three (12 KiB) stay in the
// first-level cache while six columns after six columns (6 KiB) come from the second-level one,
// where the run of all these tiles is (24 KiB), and the next tiles are fetched from memory into it.
constexpr size_t kRunGroups = kFewQueriesGroups;
constexpr size_t kQueriesTogether = 3;
constexpr size_t kTilesTogether = 4;
constexpr size_t kPairs = kTileColumns / ManyQueriesUnit::kColumns;

bool passes_by_threes(size_t query_count) { return query_count == 3 || query_count > 4; }

// The number of queries of the next pass; never one, since four are two and two.
size_t queries_together(size_t left) {
  return left == 4 || left < kQueriesTogether ? 2 : kQueriesTogether;
}

// A tile's part of a run, and the lines of memory that are to be fetched meanwhile.
struct RunOfTile {
  const int8_t* bytes;
  size_t first_column;
  size_t first_group;
  size_t group_count;
  const int8_t* ahead;
  size_t ahead_lines;    // for each pair of columns
  size_t lines_a_group;  // of these
};

// It is a function of its own, so that the compiler has all registers for it.
template <size_t kQueries>
[[gnu::noinline]] void multiply_pair(const MultiplyArgs& args, const RunOfTile& run, size_t query,
                                     size_t pair) {
  const uint8_t* queries[kQueries];
  uint32_t* products[kQueries];
  for (size_t i = 0; i < kQueries; ++i) {
    queries[i] = args.queries + (query + i) * args.query_stride + run.first_group * kGroupBytes;
    products[i] = args.products + (query + i) * args.product_stride + run.first_column +
                  ManyQueriesUnit::kColumns * pair;
    __builtin_prefetch(products[i], 1);  // may be far away by the time that they are added to
  }
  const int8_t* bytes = run.bytes + ManyQueriesUnit::kColumns * pair * kGroupRows;
  const int8_t* ahead = run.ahead + 64 * run.ahead_lines * pair;
  const int8_t* const ahead_end = ahead + 64 * run.ahead_lines;
  ManyQueriesUnit::Sums<kQueries, ManyQueriesUnit::kColumns> sums;
  size_t g = 0;
  do {
    for (size_t i = 0; i < run.lines_a_group && ahead < ahead_end; ++i, ahead += 64) {
      __builtin_prefetch(ahead, 0, 2);
    }
    sums.add(queries, g, bytes);
    bytes += kTileColumns * kGroupRows;
  } while (++g < run.group_count);
  sums.add_to(products);
}

// The place of the run of groups that comes kTilesTogether tiles after the one with this first
// column: in the same run, in one after it, or in the next memory.
const int8_t* run_ahead(const MultiplyArgs& args, size_t column, size_t group, size_t columns) {
  column += kTilesTogether * kTileColumns;
  while (column >= columns && group < args.group_count) {
    column -= columns;
    group += kRunGroups;
  }
  if (group < args.group_count) return group_in_tile<ManyQueriesUnit>(args, column, group);
  return args.next + column / kTileColumns * args.tile_stride;
}

// The whole tiles of a run for three queries or two.
void multiply_tiles_of_run(const MultiplyArgs& args, size_t group, size_t group_count, size_t first,
                           size_t last, size_t columns) {
  const size_t lines = group_count * kTileColumns;
  const size_t steps = (args.query_count + kQueriesTogether - 1) / kQueriesTogether * kPairs;
  const size_t lines_a_step = (lines + steps - 1) / steps;
  const size_t lines_a_group = (lines_a_step + group_count - 1) / group_count;
  size_t fetched = 0;
  for (size_t query = 0; query < args.query_count;) {
    const size_t count = queries_together(args.query_count - query);
    const size_t lines_a_pair = fetched < lines ? lines_a_step : 0;
    for (size_t column = first; column < last; column += kTileColumns) {
      const RunOfTile run{group_in_tile<ManyQueriesUnit>(args, column, group),
                          column,
                          group,
                          group_count,
                          run_ahead(args, column, group, columns) + 64 * fetched,
                          lines_a_pair,
                          lines_a_group};
      for (size_t pair = 0; pair < kPairs; ++pair) {
        if (count == kQueriesTogether) {
          multiply_pair<kQueriesTogether>(args, run, query, pair);
        } else {
          multiply_pair<2>(args, run, query, pair);
        }
      }
    }
    fetched += kPairs * lines_a_step;
    query += count;
  }
}

void multiply_by_threes(const MultiplyArgs& args) {
  const size_t columns = args.column_count / kTileColumns * kTileColumns;  // in whole tiles
  for (size_t group = 0; group < args.group_count; group += kRunGroups) {
    const size_t left = args.group_count - group;
    const size_t group_count = left < kRunGroups ? left : kRunGroups;
    for (size_t first = 0; first < columns; first += kTilesTogether * kTileColumns) {
      const size_t after = first + kTilesTogether * kTileColumns;
      multiply_tiles_of_run(args, group, group_count, first, after < columns ? after : columns,
                            columns);
    }
    if (columns < args.column_count) {
      const bool is_last = group + kRunGroups >= args.group_count;
      multiply_run<ManyQueriesUnit>(
          args, columns, group, kRunGroups,
          is_last ? args.next : group_in_tile<ManyQueriesUnit>(args, 0, group + kRunGroups));
    }
  }
}

void multiply(const MultiplyArgs& args) {
  if (passes_by_threes(args.query_count)) return multiply_by_threes(args);
  if (args.query_count > kVeryFewQueries) return multiply_tiles<ManyQueriesUnit>(args);
  multiply_tiles<FewQueriesUnit>(args);
}

// Writes 64 low halves, then 64 high ones.
void cut(const uint32_t* words, size_t group_stride, size_t group_count, uint8_t* limbs) {
  const __m256i low_half = _mm256_set1_epi32(0xffff);
  // The low half is signed: carry its borrow into the high half.
  const __m256i carry = _mm256_set1_epi32(0x8000);
  for (size_t g = 0; g < group_count; ++g) {
    const auto* from = reinterpret_cast<const __m256i*>(words + g * group_stride);
    auto* to = reinterpret_cast<__m256i*>(limbs + g * kGroupBytes);
    for (size_t part = 0; part < 4; ++part) {
      const __m256i a = _mm256_loadu_si256(from + 2 * part);
      const __m256i b = _mm256_loadu_si256(from + 2 * part + 1);
      const __m256i lows =
          _mm256_packus_epi32(_mm256_and_si256(a, low_half), _mm256_and_si256(b, low_half));
      const __m256i highs = _mm256_packus_epi32(_mm256_srli_epi32(_mm256_add_epi32(a, carry), 16),
                                                _mm256_srli_epi32(_mm256_add_epi32(b, carry), 16));
      // Packing works within 128 bits.
      _mm256_store_si256(to + part, _mm256_permute4x64_epi64(lows, 0xd8));
      _mm256_store_si256(to + 4 + part, _mm256_permute4x64_epi64(highs, 0xd8));
    }
  }
}

bool runs_here() { return __builtin_cpu_supports("avx2") != 0; }

}  // namespace

constinit const MultiplyKernel kMultiplyAvx2{"avx2", runs_here, cut, multiply};

}  // namespace blindfuse
