// The sums over packing tables for a batch of queries, with AMX: table words and key words are four
// bytes each, and tdpbuud multiplies 64 bytes of up to sixteen packs with 64 of sixteen queries.
// Sixteen byte products of a word come to seven sums, by the power of 2^8 that they count for; each
// is at most 4 * 3069 * 255^2, below 2^31.
//
// Roofline: 3072 * 16 byte products a point, query and pack, 1024 a cycle when both sixteens are
// full: 100,000 cycles a query and pack. Cutting a table into bytes, once a batch, takes some two
// and a half million and waits for its 25 MB out of memory, so that up to some thirty queries cost
// the same.
// Six loads of tiles for eight products come from the second-level cache, which feeds about two
// thirds of the products' rate. Asking memory for the next tables during the products was slower:
// what comes drives out what is there.
#include <immintrin.h>

#include "host/cpu/amx/tiles.h"
#include "host/cpu/packing/packing_keys.h"
#include "host/cpu/packing/ring_kernels.h"
#include "src/arithmetic/packing_table.h"

namespace blindfuse {
namespace {

using ring::kDigits;
using ring::kOrbit;

constexpr size_t kBytes = 4;      // of a word
constexpr size_t kTogether = 16;  // queries
constexpr size_t kLine = 64;      // bytes of a row of a tile: this many switches
constexpr size_t kBlocks = 4;     // lines of one digit at a time
constexpr size_t kKeySwitchesAtOnce = kBlocks * kLine;
constexpr size_t kRounds = kOrbit / kKeySwitchesAtOnce;  // the last is one switch short
constexpr size_t kSteps = kDigits * kBlocks;

// Two passes, as there are eight tile registers: the lower two bytes of table words with all of
// key words, then the upper two; five sums in each.
constexpr size_t kPasses = 2;
constexpr size_t kSums = 5;

// Switch i multiplies point p with the key at p + 1022 - i, so keys are arranged backwards: from w
// = i - p - 1022 on they are those of switches i, i + 1, and so on. Rows of a tile have four of
// each query and begin at any w, so there are four arrangements, w modulo 4 apart.
constexpr size_t kShifts = 4;
constexpr size_t kKeyRows = (kOrbit + kKeySwitchesAtOnce) / 4;
constexpr size_t kPlaneBytes = kKeyRows * kLine;
constexpr size_t kHalves = 2;
constexpr size_t kPartBytes = kShifts * kBytes * kPlaneBytes;

constexpr size_t part_of(size_t half, size_t digit) { return half * kDigits + digit; }

// Of one half of one digit: planes by shift and byte, rows of four words of each query.
void arrange_keys(const uint32_t* const* query_keys, size_t query_count, size_t part,
                  uint8_t* arranged) {
  constexpr size_t kBackwards = 4 * kKeyRows + kShifts;
  const size_t place = (2 * (part % kDigits) + part / kDigits) * PackingKeys::kHalfWords;
  for (size_t q = 0; q < kTogether; ++q) {
    for (size_t byte = 0; byte < kBytes; ++byte) {
      uint8_t backwards[kBackwards];
      for (size_t w = 0; w < kBackwards; ++w) {
        const uint32_t word =
            q < query_count ? query_keys[q][place + (kOrbit - w % kOrbit) % kOrbit] : 0;
        backwards[w] = static_cast<uint8_t>(word >> (8 * byte));
      }
      for (size_t shift = 0; shift < kShifts; ++shift) {
        uint8_t* to = arranged + (shift * kBytes + byte) * kPlaneBytes + 4 * q;
        for (size_t row = 0; row < kKeyRows; ++row) {
          __builtin_memcpy(to + row * kLine, backwards + 4 * row + shift, 4);
        }
      }
    }
  }
}

// One group of points, and where the parts of its scratch memory are.
class Group {
 public:
  explicit Group(const BatchSumArgs& args)
      : task_(args),
        tile_bytes_(args.table_count * kLine),
        sums_(args.scratch + kPointsTogether * kBytes * kSteps * tile_bytes_) {}

  static size_t scratch_bytes(size_t table_count, size_t query_count) {
    const size_t batches = (query_count + kTogether - 1) / kTogether;
    return kPointsTogether * (kBytes * kSteps + batches * kPasses * kSums) * table_count * kLine;
  }

  void add_up() {
    TileRows tiles;
    for (size_t i = 0; i < 7; ++i) tiles.rows[i] = static_cast<uint8_t>(task_.table_count);
    configure_tiles(tiles);
    for (size_t round = 0; round < kRounds; ++round) {
      cut_tables(round);
      for (size_t first = 0; first < task_.query_count; first += kTogether) {
        multiply_all(round, first / kTogether);
      }
    }
    _tile_release();
    finish();
  }

 private:
  // Tile `step` of a byte of a point: a row for each table.
  uint8_t* tile(size_t point, size_t byte, size_t step) const {
    return task_.scratch + ((point * kBytes + byte) * kSteps + step) * tile_bytes_;
  }
  uint8_t* sum(size_t batch, size_t point, size_t pass) const {
    return sums_ + ((batch * kPointsTogether + point) * kPasses + pass) * kSums * tile_bytes_;
  }

  void cut_tables(size_t round) const {
    for (size_t t = 0; t < task_.table_count; ++t) {
      for (size_t block = 0; block < kBlocks; ++block) {
        const size_t step = round * kKeySwitchesAtOnce + block * kLine;
        const size_t count = kKeySwitches - step < kLine ? kKeySwitches - step : kLine;
        for (size_t k = 0; k < kDigits; ++k) {
          cut_block(task_.tables[t] + table_place(0, step, k), count, t, k * kBlocks + block);
        }
      }
    }
  }

  // 64 switches of a digit, `count` of which there are, from lines of sixteen points to 64 bytes a
  // point and byte.
  void cut_block(const uint32_t* lines, size_t count, size_t table, size_t step) const {
    constexpr size_t kLineWords = kDigits * kPointsTogether;
    __m512i parts[16][4];  // lane i of parts[4 j + b]: byte b of point 4 i + j, sixteen switches
    for (size_t sixteen = 0; sixteen < 4; ++sixteen) {
      __m512i fours[4][4];  // lane i of fours[.][j]: point 4 i + j, its bytes, four switches each
      for (size_t four = 0; four < 4; ++four) {
        __m512i line[4];
        for (size_t i = 0; i < 4; ++i) {
          const size_t at = 16 * sixteen + 4 * four + i;
          line[i] =
              at < count ? _mm512_loadu_si512(lines + at * kLineWords) : _mm512_setzero_si512();
        }
        const __m512i low01 = _mm512_unpacklo_epi8(line[0], line[1]);
        const __m512i low23 = _mm512_unpacklo_epi8(line[2], line[3]);
        const __m512i high01 = _mm512_unpackhi_epi8(line[0], line[1]);
        const __m512i high23 = _mm512_unpackhi_epi8(line[2], line[3]);
        fours[four][0] = _mm512_unpacklo_epi16(low01, low23);
        fours[four][1] = _mm512_unpackhi_epi16(low01, low23);
        fours[four][2] = _mm512_unpacklo_epi16(high01, high23);
        fours[four][3] = _mm512_unpackhi_epi16(high01, high23);
      }
      for (size_t j = 0; j < 4; ++j) {
        const __m512i low01 = _mm512_unpacklo_epi32(fours[0][j], fours[1][j]);
        const __m512i low23 = _mm512_unpacklo_epi32(fours[2][j], fours[3][j]);
        const __m512i high01 = _mm512_unpackhi_epi32(fours[0][j], fours[1][j]);
        const __m512i high23 = _mm512_unpackhi_epi32(fours[2][j], fours[3][j]);
        parts[4 * j + 0][sixteen] = _mm512_unpacklo_epi64(low01, low23);
        parts[4 * j + 1][sixteen] = _mm512_unpackhi_epi64(low01, low23);
        parts[4 * j + 2][sixteen] = _mm512_unpacklo_epi64(high01, high23);
        parts[4 * j + 3][sixteen] = _mm512_unpackhi_epi64(high01, high23);
      }
    }
    for (size_t j = 0; j < 4; ++j) {
      for (size_t byte = 0; byte < kBytes; ++byte) {
        __m512i points[4];
        transpose_lanes(parts[4 * j + byte], points);
        for (size_t i = 0; i < 4; ++i) {
          _mm512_store_si512(tile(4 * i + j, byte, step) + table * kLine, points[i]);
        }
      }
    }
  }

  // Points four apart read the same key rows except one.
  void multiply_all(size_t round, size_t batch) const {
    for (size_t shift = 0; shift < kShifts; ++shift) {
      for (size_t point = shift; point < kPointsTogether; point += kShifts) {
        // What the first pass has brought near, the second takes from there.
        for (size_t k = 0; k < kDigits; ++k) {
          multiply<0>(round, batch, point, k);
          multiply<1>(round, batch, point, k);
        }
      }
    }
  }

  template <size_t kPass>
  void multiply(size_t round, size_t batch, size_t point, size_t digit) const {
    const size_t half = task_.point / kOrbit;
    const size_t p = (task_.point + point) % kOrbit;
    const size_t w =
        (round * kKeySwitchesAtOnce + kOrbit - (kKeySwitches - 1) + kOrbit - p) % kOrbit;
    const uint8_t* keys = task_.arranged_keys + batch * kHalves * kDigits * kPartBytes +
                          part_of(half, digit) * kPartBytes + w % 4 * kBytes * kPlaneBytes +
                          w / 4 * kLine;
    const uint8_t* lower = tile(point, 2 * kPass, digit * kBlocks);
    const uint8_t* upper = tile(point, 2 * kPass + 1, digit * kBlocks);
    uint8_t* sums = sum(batch, point, kPass);
    tiles_use_memory();
    if (round == 0 && digit == 0) {
      _tile_zero(0);
      _tile_zero(1);
      _tile_zero(2);
      _tile_zero(3);
      _tile_zero(4);
    } else {
      _tile_loadd(0, sums + 0 * tile_bytes_, kLine);
      _tile_loadd(1, sums + 1 * tile_bytes_, kLine);
      _tile_loadd(2, sums + 2 * tile_bytes_, kLine);
      _tile_loadd(3, sums + 3 * tile_bytes_, kLine);
      _tile_loadd(4, sums + 4 * tile_bytes_, kLine);
    }
    for (size_t block = 0; block < kBlocks; ++block, keys += 16 * kLine) {
      _tile_loadd(5, lower, kLine);
      _tile_loadd(6, upper, kLine);
      // A sum is not needed again before three other products have begun.
      _tile_loadd(7, keys + 0 * kPlaneBytes, kLine);
      _tile_dpbuud(0, 5, 7);
      _tile_dpbuud(1, 6, 7);
      _tile_loadd(7, keys + 2 * kPlaneBytes, kLine);
      _tile_dpbuud(2, 5, 7);
      _tile_dpbuud(3, 6, 7);
      _tile_loadd(7, keys + 1 * kPlaneBytes, kLine);
      _tile_dpbuud(1, 5, 7);
      _tile_dpbuud(2, 6, 7);
      _tile_loadd(7, keys + 3 * kPlaneBytes, kLine);
      _tile_dpbuud(3, 5, 7);
      _tile_dpbuud(4, 6, 7);
      lower += tile_bytes_;
      upper += tile_bytes_;
    }
    _tile_stored(0, sums + 0 * tile_bytes_, kLine);
    _tile_stored(1, sums + 1 * tile_bytes_, kLine);
    _tile_stored(2, sums + 2 * tile_bytes_, kLine);
    _tile_stored(3, sums + 3 * tile_bytes_, kLine);
    _tile_stored(4, sums + 4 * tile_bytes_, kLine);
    tiles_use_memory();
  }

  // The seven sums of each product put together.
  void finish() const {
    for (size_t first = 0; first < task_.query_count; first += kTogether) {
      const size_t last =
          task_.query_count - first < kTogether ? task_.query_count : first + kTogether;
      for (size_t point = 0; point < kPointsTogether; ++point) {
        const uint8_t* from = sum(first / kTogether, point, 0);
        for (size_t t = 0; t < task_.table_count; ++t) {
          for (size_t q = first; q < last; ++q) {
            task_.sums[q * task_.table_count + t][point] =
                finished(from + t * kLine + (q - first) * 4);
          }
        }
      }
    }
  }

  uint32_t finished(const uint8_t* from) const {
    using ring::kPackingModulus;
    constexpr uint64_t kTwo32 = (uint64_t{1} << 32) % kPackingModulus;
    uint64_t found[kPasses * kSums];
    for (size_t i = 0; i < kPasses * kSums; ++i) {
      uint32_t one;
      __builtin_memcpy(&one, from + i * tile_bytes_, 4);
      found[i] = one;
    }
    // In units of 1 and of 2^32; the second pass begins at 2^16.
    const uint64_t low =
        found[0] + (found[1] << 8) + ((found[2] + found[5]) << 16) + ((found[3] + found[6]) << 24);
    const uint64_t high = found[4] + found[7] + (found[8] << 8) + (found[9] << 16);
    return static_cast<uint32_t>((low + high % kPackingModulus * kTwo32) % kPackingModulus);
  }

  const BatchSumArgs& task_;
  const size_t tile_bytes_;
  uint8_t* const sums_;
};

void sum(const BatchSumArgs& args) { Group(args).add_up(); }

}  // namespace

// From where on: bench/results/NOTEBOOK.md.
const BatchSums kAmxBatchSums = {.products_min = 128,
                                 .tables_max = 16,
                                 .queries_together = kTogether,
                                 .key_parts = kHalves * kDigits,
                                 .key_part_bytes = kPartBytes,
                                 .arrange_keys = arrange_keys,
                                 .scratch_bytes = Group::scratch_bytes,
                                 .sum = sum};

}  // namespace blindfuse
