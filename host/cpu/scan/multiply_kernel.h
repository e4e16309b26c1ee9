// The innermost product, with one implementation for each instruction set. All give the same bits.
//
// A kernel first cuts the words of the queries into limbs, the numbers that its instructions
// multiply (bytes, 16-bit numbers, or whole words). Then it multiplies them with a block of the
// matrix.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "host/cpu/scan/matrix.h"

namespace blindfuse {

inline constexpr size_t kGroupRows = Matrix::kGroupRows;
inline constexpr size_t kTileColumns = Matrix::kTileColumns;
inline constexpr size_t kGroupBytes = 4 * kGroupRows;  // of the limbs of a group of query words

// products[b * product_stride + c] += sum over the rows r of group_count groups of query b's word r
// times the matrix's byte in row r and column c, modulo 2^32, for b < query_count and
// c < column_count.
//
// Query b is the limb groups at queries + b * query_stride, aligned to 64 bytes. The columns are
// tiles of a matrix's block (host/cpu/scan/matrix.h): tile t, of width w = min(6, column_count - 6
// t), begins at tiles + t * tile_stride, and of it the groups from first_group on are multiplied.
// There is at least one group, and at most those of a block: sums of parts of words then stay below
// 2^31. Towards the end the kernel fetches tiles from `next` on, of as many rows, which may be
// anywhere.
struct MultiplyArgs {
  const uint8_t* queries;
  size_t query_stride;  // bytes
  size_t query_count;
  const int8_t* tiles;
  size_t tile_stride;
  size_t column_count;
  const int8_t* next;
  size_t first_group;
  size_t group_count;
  uint32_t* products;
  size_t product_stride;  // words
  uint8_t* scratch;       // the kernel's scratch_bytes, aligned to 64; not shared meanwhile
};

struct MultiplyKernel {
  std::string_view name;
  bool (*runs_here)();  // whether this processor and system can run it
  // Cuts group_count groups of 64 words each, group g at words + g * group_stride, into
  // group_count * kGroupBytes bytes, aligned to 64.
  void (*cut)(const uint32_t* words, size_t group_stride, size_t group_count, uint8_t* limbs);
  void (*multiply)(const MultiplyArgs& args);
  // The largest number of queries in a call. Their limbs of a block (12 KiB a query) stay in the
  // second-level cache while the block passes.
  size_t queries_at_once = 32;
  size_t scratch_bytes = 0;
};

// All kernels that were compiled for this kind of processor, the best guess first. The last one
// runs everywhere.
std::span<const MultiplyKernel* const> multiply_kernels();

extern const MultiplyKernel kMultiplyPortable;
extern const MultiplyKernel kMultiplyAvx2;
extern const MultiplyKernel kMultiplyAvx512;
extern const MultiplyKernel kMultiplyAvxVnni;
extern const MultiplyKernel kMultiplyAvx512Vnni;
extern const MultiplyKernel kMultiplyAmx;
extern const MultiplyKernel kMultiplyNeonDotprod;

// The kernels that this processor runs, the best guess first.
std::vector<const MultiplyKernel*> usable_kernels();

// The kernel of this name or, for "", the one that is fastest here: at the first call, each is
// timed for less than a millisecond. Throws UsageError for a name that is not usable.
const MultiplyKernel& choose_kernel(std::string_view name);

}  // namespace blindfuse
