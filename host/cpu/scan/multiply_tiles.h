// Multiplies a block of the matrix with a few queries, tile after tile. All kernels share this
// code.
//
// Only the kernel files include it, each compiled for its own instruction set. Unit is a type of
// that file's unnamed namespace, so that every instantiation belongs to the file alone. Otherwise
// the linker could keep one that was compiled for another processor. For the same reason the code
// calls no function of the standard library.
//
// Unit defines the number of queries and columns in the registers at a time, kQueries x kColumns
// (kColumns divides 6), and how far ahead the matrix is fetched, kAheadBytes; and has
//
//   Sums<Q, C>     their accumulators, zero at first
//     add(const uint8_t* const* queries, size_t group, const int8_t* bytes)
//                  multiplies the queries' group `group` with C columns, 64 bytes each
//     add_to(uint32_t* const* products)
//                  adds the sums to products[q][0 .. C-1]
#pragma once

#include "host/cpu/scan/multiply_kernel.h"

namespace blindfuse {

// Keeps a value in one register: GCC 12 otherwise copies an accumulator of a loop to a second one,
// and to memory where registers run out, for what comes after the loop; and reads a column's bytes
// from memory again for every multiplication.
#if defined(__aarch64__)
#define BLINDFUSE_KEEP_IN_REGISTER(vector) asm("" : "+w"(vector))
#else
#define BLINDFUSE_KEEP_IN_REGISTER(vector) asm("" : "+v"(vector))
#endif

// The groups that pass at a time. With few queries these are runs of 1024 rows, so that their words
// and the bytes that are fetched ahead stay in the first-level cache together with the matrix (48
// KiB on Zen 5). With many queries, whose words stream from the second-level cache, longer runs
// save additions across lanes.
inline constexpr size_t kFewQueries = 4;
inline constexpr size_t kFewQueriesGroups = 16;
// Up to this many queries, the words of all of a block's runs fit there, and a tile is read to its
// end before the next; beyond, all tiles pass for one run before the next run begins.
inline constexpr size_t kVeryFewQueries = 2;
// A usual distance at which the matrix is fetched ahead of the multiplication. With many queries
// the fetches are spread over all of them, so that memory and multiplier work at the same time.
inline constexpr size_t kUsualAheadBytes = 24 * 1024;

// The place of the bytes of a tile that a pass multiplies.
struct TilePass {
  const int8_t* bytes;  // of the first group
  const int8_t* ahead;  // what to fetch meanwhile: as many bytes, wanted some passes later
  size_t group_stride;  // 64 times the tile's width
  size_t first_query_group;
  size_t group_count;
};

// Fetches the bytes ahead of a pass, a part of them with each of its steps. A template, for the
// reason above.
template <typename Unit>
class Ahead {
 public:
  Ahead(const TilePass& pass, size_t step_count) : pass_(pass), lines_(pass.group_stride / 64) {
    lines_a_step_ = (lines_ + step_count - 1) / step_count;
  }

  size_t lines() const { return lines_a_step_; }
  // The address that the next step fetches, lines() for each group. It no longer changes after all
  // is fetched.
  const int8_t* next() {
    const size_t fetched = steps_++ * lines_a_step_;
    return pass_.ahead + (fetched < lines_ ? fetched * 64 * pass_.group_count : 0);
  }

 private:
  const TilePass& pass_;
  size_t lines_;
  size_t lines_a_step_;
  size_t steps_ = 0;
};

template <typename Unit, size_t kQueries, size_t kColumns, size_t kLines>
inline void multiply_step(const MultiplyArgs& args, const TilePass& pass, size_t b, size_t c,
                          size_t tile_column, const int8_t* ahead) {
  const uint8_t* queries[kQueries];
  uint32_t* products[kQueries];
  for (size_t i = 0; i < kQueries; ++i) {
    queries[i] = args.queries + (b + i) * args.query_stride + pass.first_query_group * kGroupBytes;
    products[i] = args.products + (b + i) * args.product_stride + c + tile_column;
    __builtin_prefetch(products[i], 1);  // may be far away by the time that they are added to
  }
  const int8_t* bytes = pass.bytes + tile_column * kGroupRows;
  typename Unit::template Sums<kQueries, kColumns> sums;
  size_t g = 0;
  do {
#pragma GCC unroll 6
    for (size_t i = 0; i < kLines; ++i) __builtin_prefetch(ahead + (g * kLines + i) * 64);
    sums.add(queries, g, bytes);
    bytes += pass.group_stride;
  } while (++g < pass.group_count);
  sums.add_to(products);
}

// All queries with kColumns of a tile's columns.
template <typename Unit, size_t kColumns, size_t kLines>
inline void multiply_queries(const MultiplyArgs& args, const TilePass& pass, size_t c,
                             size_t tile_column, Ahead<Unit>& ahead) {
  size_t b = 0;
  for (; b + Unit::kQueries <= args.query_count; b += Unit::kQueries) {
    multiply_step<Unit, Unit::kQueries, kColumns, kLines>(args, pass, b, c, tile_column,
                                                          ahead.next());
  }
  for (; b < args.query_count; ++b) {
    multiply_step<Unit, 1, kColumns, kLines>(args, pass, b, c, tile_column, ahead.next());
  }
}

// A pass over a tile of six columns.
template <typename Unit, size_t kLines>
inline void multiply_whole_tile(const MultiplyArgs& args, const TilePass& pass, size_t c,
                                Ahead<Unit>& ahead) {
  for (size_t j = 0; j < kTileColumns; j += Unit::kColumns) {
    multiply_queries<Unit, Unit::kColumns, kLines>(args, pass, c, j, ahead);
  }
}

// A pass over a tile of fewer columns. There is at most one such tile.
template <typename Unit>
inline void multiply_narrow_tile(const MultiplyArgs& args, const TilePass& pass, size_t c,
                                 Ahead<Unit>& ahead) {
  const size_t width = pass.group_stride / kGroupRows;
  size_t j = 0;
  if constexpr (Unit::kColumns > 2) {
    for (; j + 2 <= width; j += 2) multiply_queries<Unit, 2, 1>(args, pass, c, j, ahead);
  }
  for (; j < width; ++j) multiply_queries<Unit, 1, 1>(args, pass, c, j, ahead);
}

template <typename Unit>
inline void multiply_tile(const MultiplyArgs& args, const TilePass& pass, size_t c) {
  const size_t steps = args.query_count / Unit::kQueries + args.query_count % Unit::kQueries;
  Ahead<Unit> ahead(pass, steps * (kTileColumns / Unit::kColumns));
  if (pass.group_stride != kTileColumns * kGroupRows) {
    return multiply_narrow_tile<Unit>(args, pass, c, ahead);
  }
  if (ahead.lines() == 1) return multiply_whole_tile<Unit, 1>(args, pass, c, ahead);
  if (ahead.lines() == 2) return multiply_whole_tile<Unit, 2>(args, pass, c, ahead);
  if (ahead.lines() == 3) return multiply_whole_tile<Unit, 3>(args, pass, c, ahead);
  multiply_whole_tile<Unit, 6>(args, pass, c, ahead);
}

// The start of group g of args in the tile whose first column is c.
template <typename Unit>
inline const int8_t* group_in_tile(const MultiplyArgs& args, size_t c, size_t g) {
  const size_t left = args.column_count - c;
  const size_t width = left < kTileColumns ? left : kTileColumns;
  return args.tiles + c / kTileColumns * args.tile_stride +
         (args.first_group + g) * width * kGroupRows;
}

// The groups from g on, at most `run`, with the tile whose first column is c.
template <typename Unit>
inline void multiply_run(const MultiplyArgs& args, size_t c, size_t g, size_t run,
                         const int8_t* ahead) {
  const size_t left = args.column_count - c;
  const size_t width = left < kTileColumns ? left : kTileColumns;
  const size_t groups = args.group_count - g;
  multiply_tile<Unit>(
      args,
      {group_in_tile<Unit>(args, c, g), ahead, width * kGroupRows, g, groups < run ? groups : run},
      c);
}

// The bytes to fetch while the groups from g on pass, in a call that is read from beginning to end:
// the bytes further on and, after the end, those that are read next.
template <typename Unit>
inline const int8_t* ahead_of(const MultiplyArgs& args, size_t c, size_t g) {
  const int8_t* here = group_in_tile<Unit>(args, c, g);
  const int8_t* end = args.tiles + args.column_count * (args.tile_stride / kTileColumns);
  const auto left = static_cast<size_t>(end - here);
  return left > Unit::kAheadBytes ? here + Unit::kAheadBytes
                                  : args.next + (Unit::kAheadBytes - left);
}

// All tiles for a run of groups before the next run; as many tiles ahead as have at most
// kAheadBytes in one run.
template <typename Unit>
inline void multiply_run_by_run(const MultiplyArgs& args) {
  constexpr size_t kRun = kFewQueriesGroups;
  constexpr size_t kColumnsAhead =
      Unit::kAheadBytes / (kRun * kGroupRows * kTileColumns) * kTileColumns;
  static_assert(kColumnsAhead > 0);
  for (size_t g = 0; g < args.group_count; g += kRun) {
    for (size_t c = 0; c < args.column_count; c += kTileColumns) {
      // After the last tile come the first ones of the next run, and after the last run those that
      // are next.
      const bool here = c + kColumnsAhead < args.column_count;
      const size_t column = here ? c + kColumnsAhead : c % kColumnsAhead;
      const size_t group = here ? g : g + kRun;
      const int8_t* ahead = group < args.group_count
                                ? group_in_tile<Unit>(args, column, group)
                                : args.next + column / kTileColumns * args.tile_stride;
      multiply_run<Unit>(args, c, g, kRun, ahead);
    }
  }
}

template <typename Unit>
inline void multiply_tiles(const MultiplyArgs& args) {
  if (args.query_count == 0) return;
  const bool few = args.query_count <= kFewQueries;
  if (few && args.query_count > kVeryFewQueries) return multiply_run_by_run<Unit>(args);
  const size_t run = few ? kFewQueriesGroups : Matrix::kBlockRows / kGroupRows;
  for (size_t c = 0; c < args.column_count; c += kTileColumns) {
    for (size_t g = 0; g < args.group_count; g += run) {
      multiply_run<Unit>(args, c, g, run, ahead_of<Unit>(args, c, g));
    }
  }
}

}  // namespace blindfuse
