// The instruction sets for which packing has code: NTTs, and the sums over a packing table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "host/cpu/packing/key_switch_ntt.h"
#include "host/cpu/packing/vector_ntt_tables.h"

namespace blindfuse {

// Sums of 16 points of a packing table for several queries.
struct GroupSumArgs {
  const uint32_t* table;        // the group's words
  const uint32_t* const* keys;  // PackingKeys::words() of each query
  size_t query_count;
  size_t point;    // the first; a multiple of 16
  uint32_t* sums;  // 16 for each query, modulo the packing modulus
};

// Sums of 16 points of the tables of some packs, for a batch of queries at a time.
struct BatchSumArgs {
  const uint32_t* const* tables;      // the group's words of each
  const uint32_t* const* query_keys;  // PackingKeys::words() of each query
  const uint8_t* arranged_keys;       // what arrange_keys made of them
  size_t table_count;                 // 1 .. tables_max
  size_t query_count;
  size_t point;           // the first; a multiple of 16
  uint8_t* scratch;       // aligned to 64 bytes
  uint32_t* const* sums;  // of each query and, for each, of each table: 16, modulo the modulus
};

// A kernel's functions for batches. Tables are first cut up for it, and products are made for whole
// tiles of tables and queries. So it pays if there are at least products_min pairs of a query and a
// table.
struct BatchSums {
  size_t products_min;
  size_t tables_max;
  // Keys are arranged for this many queries together, in key_parts parts, by any threads.
  size_t queries_together;
  size_t key_parts;
  size_t key_part_bytes;
  // Part `part` of the keys of up to queries_together queries, to key_part_bytes from a multiple of
  // 64 on.
  void (*arrange_keys)(const uint32_t* const* query_keys, size_t query_count, size_t part,
                       uint8_t* arranged);
  size_t (*scratch_bytes)(size_t table_count, size_t query_count);
  void (*sum)(const BatchSumArgs& args);

  // All parts of the first queries together, then those of the next.
  size_t arranged_bytes(size_t query_count) const {
    return groups(query_count) * key_parts * key_part_bytes;
  }
  size_t groups(size_t query_count) const {
    return (query_count + queries_together - 1) / queries_together;
  }
};

struct RingKernel {
  std::string_view name;
  size_t lanes;  // 0: the NTT is ring::portable_ntt's, and the seven functions that follow are not
                 // there
  // Of a polynomial whose coefficients are zero from number `count` on.
  void (*forward)(const VectorNttView& view, uint32_t* polynomial, size_t count);
  void (*inverse)(const VectorNttView& view, uint32_t* polynomial);
  void (*add_products)(const VectorNttView& view, const uint32_t* a, const uint32_t* b,
                       uint32_t* sum);
  void (*add_divided_products)(const VectorNttView& view, const uint32_t* a, const uint32_t* b,
                               uint32_t* sum);
  void (*join_halves)(const VectorNttView& view, const uint32_t* values, uint32_t* joined);
  void (*add_digit_products)(const VectorNttView& view, const DigitProducts& products);
  void (*decompose)(const VectorNttView& view, const uint32_t* polynomial, uint32_t* const* digits);
  void (*sum_group)(const GroupSumArgs& args);
  const BatchSums* batch = nullptr;  // none
};

// The kernels that this processor can run, the best first. The last is "portable".
const std::vector<RingKernel>& ring_kernels();

std::unique_ptr<const KeySwitchNtt> make_ntt(const RingKernel& kernel, uint32_t modulus);
extern const RingKernel kPortableRingKernel;
#if defined(__x86_64__)
extern const RingKernel kAvx2RingKernel;
extern const RingKernel kAvx512RingKernel;
extern const BatchSums kAmxBatchSums;
#endif

}  // namespace blindfuse
