// u32 x i8 with AMX: a word is four bytes, and tdpbsud multiplies sixteen columns of 64 signed
// bytes with sixteen times 64 unsigned ones, four bytes of each of four queries' words, into 16 x
// 16 sums. Sums of a block stay far below 2^31; when the four of a word are put together, they wrap
// modulo 2^32, as they should.
//
// Roofline: 256 multiply-adds of words a cycle (one instruction in 16 cycles on Sapphire Rapids),
// eight times what vpdpbusd does there. Two by two tiles of sums take four loads for four
// instructions, 64 bytes a cycle, which the second-level cache does not give: about a third of the
// peak is reached, and memory is the limit up to some twenty queries. With one or two queries, or
// few columns, most of a tile would be empty: vpdpbusd does those.
#include <immintrin.h>

#include "host/cpu/amx/amx.h"
#include "host/cpu/amx/tiles.h"
#include "host/cpu/scan/multiply_kernel.h"

namespace blindfuse {
namespace {

constexpr size_t kTileRows = 16;        // columns of the matrix, or four rows each
constexpr size_t kTileBytes = 16 * 64;  // a tile register
constexpr size_t kTileQueries = 4;
constexpr size_t kStripColumns = 2 * kTileRows;
constexpr size_t kStripGroupBytes = kStripColumns * kGroupRows;
constexpr size_t kBlockGroups = Matrix::kBlockRows / kGroupRows;

constexpr size_t kQueriesAtOnce = 64;
constexpr size_t kFewQueries = 2;
constexpr size_t kNarrowQueries = 8;

// The scratch memory holds the operands in the order in which tiles are loaded.
constexpr size_t kQueriesBytes = kQueriesAtOnce / kTileQueries * kBlockGroups * kTileBytes;
constexpr size_t kStripBytes = kBlockGroups * kStripGroupBytes;
constexpr size_t kScratchBytes = kQueriesBytes + kStripBytes;

size_t at_most(size_t count, size_t most) { return count < most ? count : most; }

// Every four words become their first bytes, then their second, and so on.
void cut(const uint32_t* words, size_t group_stride, size_t group_count, uint8_t* limbs) {
  const __m512i by_limb =
      _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  for (size_t g = 0; g < group_count; ++g) {
    for (size_t i = 0; i < 4; ++i) {
      const __m512i sixteen = _mm512_loadu_si512(words + g * group_stride + 16 * i);
      _mm512_store_si512(limbs + g * kGroupBytes + 64 * i, _mm512_shuffle_epi8(sixteen, by_limb));
    }
  }
}

// Tiles of four queries, group after group: row k has the bytes of words 4 k .. 4 k + 3, 16 of each
// query. Queries that there are not are zero.
void interleave_queries(const MultiplyArgs& args) {
  const __m512i zero = _mm512_setzero_si512();
  for (size_t b = 0; b < args.query_count; b += kTileQueries) {
    uint8_t* tiles = args.scratch + b / kTileQueries * args.group_count * kTileBytes;
    for (size_t part = 0; part < args.group_count * kGroupBytes; part += 64) {
      __m512i queries[kTileQueries];
      __m512i rows[4];
      for (size_t i = 0; i < kTileQueries; ++i) {
        queries[i] = b + i < args.query_count
                         ? _mm512_load_si512(args.queries + (b + i) * args.query_stride + part)
                         : zero;
      }
      transpose_lanes(queries, rows);
      for (size_t i = 0; i < 4; ++i) _mm512_store_si512(tiles + 4 * part + 64 * i, rows[i]);
    }
  }
}

// The places where the columns of a strip begin, and the distances of their groups.
struct Strip {
  const int8_t* columns[kStripColumns];
  size_t strides[kStripColumns];
  size_t width;

  Strip(const MultiplyArgs& args, size_t first) {
    const size_t left = args.column_count - first;
    width = left < kStripColumns ? left : kStripColumns;
    for (size_t i = 0; i < width; ++i) {
      const size_t tile = (first + i) / kTileColumns * kTileColumns;
      const size_t tile_left = args.column_count - tile;
      strides[i] = (tile_left < kTileColumns ? tile_left : kTileColumns) * kGroupRows;
      columns[i] = args.tiles + tile / kTileColumns * args.tile_stride +
                   args.first_group * strides[i] + (first + i - tile) * kGroupRows;
    }
  }
  // The strip that comes after the last one. Its layout is the same, except for its last columns.
  explicit Strip(const MultiplyArgs& args) : width(at_most(args.column_count, kStripColumns)) {
    for (size_t i = 0; i < width; ++i) {
      strides[i] = kTileColumns * kGroupRows;
      columns[i] = args.next + i / kTileColumns * args.tile_stride + i % kTileColumns * kGroupRows;
    }
  }

  // Group after group, column after column; columns that there are not are zero.
  void copy(size_t group_count, uint8_t* to) const {
    for (size_t g = 0; g < group_count; ++g, to += kStripGroupBytes) {
      for (size_t i = 0; i < width; ++i) {
        _mm512_store_si512(to + i * kGroupRows, _mm512_load_si512(columns[i] + g * strides[i]));
      }
      for (size_t i = width; i < kStripColumns; ++i) {
        _mm512_store_si512(to + i * kGroupRows, _mm512_setzero_si512());
      }
    }
  }
};

// Fetches the next strip into the second-level cache, some lines of each group in each pass.
struct Ahead {
  const Strip& strip;
  size_t first, last;  // columns

  void fetch(size_t g) const {
    for (size_t i = first; i < last; ++i) {
      _mm_prefetch(reinterpret_cast<const char*>(strip.columns[i] + g * strip.strides[i]),
                   _MM_HINT_T1);
    }
  }
};

// Adds a tile of sums, 16 columns x (4 queries x 4 bytes), to the products of `columns` of them.
void add_sums(const uint32_t* sums, size_t queries, size_t columns, uint32_t* products,
              size_t stride) {
  const __m512i shifts = _mm512_broadcast_i32x4(_mm_setr_epi32(0, 8, 16, 24));
  __m512i fours[4];  // lane q of vector i: columns 4 i .. 4 i + 3 of query q
  for (size_t i = 0; i < 4; ++i) {
    __m512i rows[4];
    for (size_t j = 0; j < 4; ++j) {
      rows[j] = _mm512_sllv_epi32(_mm512_load_si512(sums + (4 * i + j) * 16), shifts);
    }
    const __m512i halves01 = _mm512_add_epi32(_mm512_unpacklo_epi32(rows[0], rows[1]),
                                              _mm512_unpackhi_epi32(rows[0], rows[1]));
    const __m512i halves23 = _mm512_add_epi32(_mm512_unpacklo_epi32(rows[2], rows[3]),
                                              _mm512_unpackhi_epi32(rows[2], rows[3]));
    fours[i] = _mm512_add_epi32(_mm512_unpacklo_epi64(halves01, halves23),
                                _mm512_unpackhi_epi64(halves01, halves23));
  }
  __m512i by_query[4];
  transpose_lanes(fours, by_query);
  const auto mask = static_cast<__mmask16>((1u << columns) - 1);
  for (size_t q = 0; q < queries; ++q) {
    uint32_t* product = products + q * stride;
    const __m512i sum = _mm512_add_epi32(_mm512_maskz_loadu_epi32(mask, product), by_query[q]);
    _mm512_mask_storeu_epi32(product, mask, sum);
  }
}

// Columns c .. c + width - 1, which are at `strip`, with up to eight queries from b on.
template <bool kBoth>
void multiply_strip(const MultiplyArgs& args, const uint8_t* strip, size_t width, size_t c,
                    size_t b, const Ahead& ahead) {
  const uint8_t* queries = args.scratch + b / kTileQueries * args.group_count * kTileBytes;
  const uint8_t* more = queries + args.group_count * kTileBytes;
  tiles_use_memory();
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (size_t g = 0; g < args.group_count; ++g) {
    ahead.fetch(g);
    _tile_loadd(4, strip + g * kStripGroupBytes, 64);
    _tile_loadd(6, queries + g * kTileBytes, 64);
    _tile_dpbsud(0, 4, 6);
    _tile_loadd(5, strip + g * kStripGroupBytes + kTileBytes, 64);
    _tile_dpbsud(1, 5, 6);
    if constexpr (kBoth) {
      _tile_loadd(7, more + g * kTileBytes, 64);
      _tile_dpbsud(2, 4, 7);
      _tile_dpbsud(3, 5, 7);
    }
  }
  alignas(64) uint32_t sums[4][kTileBytes / 4];
  _tile_stored(0, sums[0], 64);
  _tile_stored(1, sums[1], 64);
  _tile_stored(2, sums[2], 64);
  _tile_stored(3, sums[3], 64);
  asm volatile("" : : "r"(sums) : "memory");
  for (size_t i = 0; i < 4; ++i) {
    const size_t column = i % 2 * kTileRows;
    const size_t query = b + i / 2 * kTileQueries;
    if (column >= width || query >= args.query_count) continue;
    add_sums(sums[i], at_most(args.query_count - query, kTileQueries),
             at_most(width - column, kTileRows),
             args.products + query * args.product_stride + c + column, args.product_stride);
  }
}

void multiply_many(const MultiplyArgs& args) {
  configure_tiles(TileRows{});
  interleave_queries(args);
  uint8_t* strip = args.scratch + kQueriesBytes;
  const size_t passes = (args.query_count + 2 * kTileQueries - 1) / (2 * kTileQueries);
  const size_t lines = (kStripColumns + passes - 1) / passes;
  for (size_t c = 0; c < args.column_count; c += kStripColumns) {
    const Strip here(args, c);
    here.copy(args.group_count, strip);
    const bool is_last = c + kStripColumns >= args.column_count;
    const Strip next = is_last ? Strip(args) : Strip(args, c + kStripColumns);
    for (size_t pass = 0; pass < passes; ++pass) {
      const size_t b = pass * 2 * kTileQueries;
      const Ahead ahead{next, at_most(pass * lines, next.width),
                        at_most((pass + 1) * lines, next.width)};
      if (args.query_count - b > kTileQueries) {
        multiply_strip<true>(args, strip, here.width, c, b, ahead);
      } else {
        multiply_strip<false>(args, strip, here.width, c, b, ahead);
      }
    }
  }
  _tile_release();
}

// Queries are cut as by kMultiplyAvx512Vnni: the first bytes of 64 words, then the second, and so
// on.
void multiply_as_vnni(const MultiplyArgs& args) {
  MultiplyArgs few = args;
  few.queries = args.scratch;
  for (size_t b = 0; b < args.query_count; ++b) {
    for (size_t g = 0; g < args.group_count; ++g) {
      const size_t group = b * args.query_stride + g * kGroupBytes;
      __m512i v[4];
      for (size_t i = 0; i < 4; ++i) v[i] = _mm512_load_si512(args.queries + group + 64 * i);
      const __m512i low01 = _mm512_unpacklo_epi32(v[0], v[1]);
      const __m512i low23 = _mm512_unpacklo_epi32(v[2], v[3]);
      const __m512i high01 = _mm512_unpackhi_epi32(v[0], v[1]);
      const __m512i high23 = _mm512_unpackhi_epi32(v[2], v[3]);
      const __m512i limbs[4] = {
          _mm512_unpacklo_epi64(low01, low23), _mm512_unpackhi_epi64(low01, low23),
          _mm512_unpacklo_epi64(high01, high23), _mm512_unpackhi_epi64(high01, high23)};
      // Each 128 bits now have words k, 4 + k, 8 + k ...; there are four lanes of them.
      const __m512i in_order =
          _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
      for (size_t l = 0; l < 4; ++l) {
        _mm512_store_si512(args.scratch + group + 64 * l,
                           _mm512_permutexvar_epi32(in_order, limbs[l]));
      }
    }
  }
  kMultiplyAvx512Vnni.multiply(few);
}

// Strips and tiles that are mostly empty take as long as full ones.
bool is_narrow(const MultiplyArgs& args) {
  return args.column_count < (args.query_count <= kNarrowQueries ? 48u : 24u);
}

void multiply(const MultiplyArgs& args) {
  if (args.query_count <= kFewQueries || is_narrow(args)) return multiply_as_vnni(args);
  multiply_many(args);
}

bool runs_here() { return kMultiplyAvx512Vnni.runs_here() && amx_runs_here(); }

}  // namespace

constinit const MultiplyKernel kMultiplyAmx{"amx",    runs_here,      cut,
                                            multiply, kQueriesAtOnce, kScratchBytes};

}  // namespace blindfuse
