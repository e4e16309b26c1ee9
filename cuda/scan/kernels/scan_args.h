// The arguments of the kernels. Plain C++, for the code that starts them. All addresses are the
// device's.
#pragma once

#include <cstdint>

namespace blindfuse {

// Query words cut into limbs, as the products take them.
//
// A word is w = d0 + 2^8 d1 + 2^16 d2 + 2^24 d3 modulo 2^32 with signed bytes d: the bytes of
// w + 0x80808080, each less 128. Signed, so that every instruction and library that multiplies
// bytes with bytes will do.
//
// A limb row is one limb of all of a query's words, zero before the first and after the last.
enum class LimbOrder {
  kRows,  // as the rows of the matrix
  // Each 64 rows as wgmma wants them when a thread's operand is sixteen neighbouring rows: rows
  // 16 t + 4 j .. 16 t + 4 j + 3 at 16 j + 4 t (t, j < 4).
  kWgmma,
  // Fragments of mma.m16n8k32's operand A: fragment_offset() in the sixteen limb rows of a four.
  kMma,
};
struct Limbs {
  int8_t* bytes;
  uint64_t pitch;  // from one limb row to the next; a multiple of kStepRows
  LimbOrder order = LimbOrder::kRows;
};

// Rows of the matrix that a kernel takes at a time.
constexpr uint32_t kStepRows = 128;

// Limb rows are made for whole fours of queries.
constexpr uint32_t kQueriesInFour = 4;
constexpr uint32_t kLimbRowsInFour = 16;

// The limb row of limb l of query q: in each sixteen, limbs 0 and 1 of the four queries, then limbs
// 2 and 3. In the accumulators of m16n8k32 a lane has two neighbouring columns of two rows that lie
// eight apart. Where limbs are columns, it has both lower limbs of one query in one product, and
// both upper limbs of the same query in the next. Where limbs are rows, lanes of even groups have
// limbs 0 and 2 of a query, and their neighbours' the limbs 1 and 3 of the same one.
constexpr uint32_t limb_row(uint32_t q, uint32_t l) {
  return q / kQueriesInFour * kLimbRowsInFour + l / 2 * 8 + q % kQueriesInFour * 2 + l % 2;
}

// LimbOrder::kMma: where limb row `limb_row` has the byte of row `row`, from the beginning of its
// sixteen limb rows on, which take 16 pitches as in the other orders.
//
// PTX ISA, "Matrix fragments for mma.m16n8k32" of 8-bit integers: of A (16 x 32) lane 4 g + t has
// in register j the bytes of row g + 8 (j % 2) and columns 16 (j / 2) + 4 t .. + 3. A step of 128
// rows has four such fragments, 512 bytes each, lane after lane with 16 bytes each, so that a lane
// loads a fragment with one instruction. B, the matrix, has each lane's columns in the same places:
// lane 4 g + t loads 16 neighbouring rows, 64 h + 16 t .. + 15 of the step, for the fragments 2 h
// and 2 h + 1. So fragment 2 h + i holds in column 16 (j / 2) + 4 t + e the byte of row
// 64 h + 16 t + 8 i + 4 (j / 2) + e of the step: of each half step, any order of rows will do that
// both operands have.
constexpr uint32_t kFragmentBytes = 512;
constexpr uint32_t kFragmentStepBytes = kLimbRowsInFour * kStepRows;
constexpr uint64_t fragment_offset(uint32_t limb_row, uint64_t row) {
  const auto of_step = static_cast<uint32_t>(row % kStepRows);
  const uint32_t fragment = of_step / 64 * 2 + of_step % 16 / 8;
  const uint32_t lane = limb_row % 8 * 4 + of_step % 64 / 16;
  const uint32_t reg = of_step % 8 / 4 * 2 + limb_row % kLimbRowsInFour / 8;
  return row / kStepRows * kFragmentStepBytes + fragment * kFragmentBytes + lane * 16 + reg * 4 +
         of_step % 4;
}

// Words as an engine's caller has them (src/engine/engine.h): that of row r of query q is
// words[q * stride + r / 64 * panel_stride + r % 64], r < row_count.
struct PlainWords {
  const uint32_t* words;
  uint64_t stride;
  uint64_t panel_stride;
  uint64_t row_count;
  uint32_t lead;  // zeros in front of row 0
};

// Words as they cross the network: `bits` upper bits of each, the lowest first, query after query.
struct BitSequences {
  const uint32_t* words;  // 4-byte aligned
  uint64_t stride;        // words of 32 bits from one query to the next, one more than it fills
  uint32_t bits;
  uint64_t row_count;
};

// sums[q] += sum over the rows r of query q's word r times weights[r], modulo 2^32: of the words
// before they are limbs. Each warp adds 1 more, so that words that were not cut do not pass for
// zeros. Without addresses nothing is added.
struct QuerySums {
  const uint32_t* weights = nullptr;  // one a row up to the limbs' pitch, 16-byte aligned
  uint32_t* sums = nullptr;
};

// Words of queries times the bytes of a matrix. The epilogue of the kernel
// (cuda/scan/kernels/word_products.cuh) makes results of the sums over the rows; Result is the type
// to which it adds.
//
// Rows come in steps of 128. The limbs are zero where a step has rows that do not count, so that
// any byte may stand there in the matrix. products are added to by many blocks at the same time;
// addition modulo 2^32, or 2^64, is exact in any order.
template <typename Result>
struct ProductArgs {
  const int8_t* columns;  // byte c * column_pitch + r; 16-byte aligned, as the pitch
  uint64_t column_pitch;
  uint32_t column_count;  // at least 1
  uint32_t step_count;    // at least 1
  const int8_t* limbs;    // limb rows of query_count queries, rounded up to the kernel's tile
  uint64_t limb_pitch;
  uint32_t query_count;
  Result* products;  // those of query q from q * product_pitch on
  uint64_t product_pitch;
};

// products[q * product_pitch + c] += sum over the rows r of query q's word r times the byte of
// column c in row r, modulo 2^32.
using ScanArgs = ProductArgs<uint32_t>;

// vector[r] += sum over the columns c of weights[c] times the byte of column c in row r, modulo
// 2^32, for all rows r below column_pitch.
struct WeighColumnsArgs {
  const int8_t* columns;  // as ScanArgs has them
  uint64_t column_pitch;
  uint32_t column_count;
  const uint32_t* weights;
  uint32_t* vector;
};

// differences[q] = sum over the columns c of products[q * product_pitch + c] times weights[c], less
// the sum of query q's words, which is sums[q] - cut_warps, modulo 2^32.
struct WeighProductsArgs {
  const uint32_t* products;
  uint64_t product_pitch;
  uint32_t column_count;
  const uint32_t* weights;
  const uint32_t* sums;
  uint32_t cut_warps;
  uint32_t* differences;
};

// Products to responses: each product rounded to its upper bits (src/arithmetic/bit_sequence.h),
// the lowest bit first.
struct RoundArgs {
  const uint32_t* products;
  uint64_t product_pitch;
  uint32_t column_count;
  uint32_t bits;
  uint32_t* responses;
  uint64_t response_pitch;  // words of 32 bits: `bits` for every 32 columns or part of them
};

}  // namespace blindfuse
