// Packs the words of one row of a packed response, which the query asks for: the second level of
// packed responses. The words of all rows are a small matrix, which is multiplied with the query's
// second words; its mask depends on the response, and so its digits come from no table.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "host/cpu/packing/ring_kernels.h"
#include "host/cpu/packing/short_traces.h"
#include "src/arithmetic/packing_table.h"
#include "src/arithmetic/ring/key_masks.h"
#include "src/arithmetic/ring/ntt.h"

namespace blindfuse {

class SecondLevelPacker {
 public:
  // blocks: the public polynomials a2_j of all blocks of 2048 rows, one after another, in the
  // evaluation domain of Ntt. key_order: m, of a short key; 0: the key is that for X -> X^5.
  // key_masks: of this key, as PublicPolynomials::key_masks() or short_key_masks() has them.
  SecondLevelPacker(std::span<const uint32_t> blocks, uint32_t key_order,
                    std::vector<uint32_t> key_masks,
                    const RingKernel& kernel = ring_kernels().front());

  struct Task {
    const uint32_t* key;  // PackingKeys::words() of the packing key, or of the short one
    // b2: a number below the packing modulus for each row; at most 2048 for each block.
    std::span<const uint32_t> words;
    // The entries of the row's columns that are packed, row_pitch apart: -2^20 .. 2^20. At most
    // 1024 columns, or m.
    std::span<const int32_t> entries;
    size_t row_pitch;
    size_t column_count;
    // Coefficients modulo the packing modulus: with b2 = s a2 + e2 + m, coefficient k of body - s
    // mask is near the sum over the rows of m[row] times column k's entry, for k < column_count.
    ring::MutablePolynomial mask;
    std::span<uint32_t, kPackColumns> body;
  };

  // Takes 1023 key switches, as many transforms, and 8 MiB; with a short key m - 1, of which each
  // is four transforms, and 16 KiB for each unit of m; and a transform more for each column and
  // block of rows. Any thread.
  void pack(const Task& task) const;

 private:
  template <typename Trace>
  void switch_keys(const Task& task, size_t count, size_t power, const Trace& trace) const;
  void add_products(const Task& task, std::span<uint32_t> sums) const;
  void hint_values(const Task& task, size_t column, ring::MutablePolynomial values) const;

  std::unique_ptr<const ring::Ntt> ntt_;
  ring::KeyMasks key_masks_;
  std::vector<uint32_t> blocks_;  // conjugated: X^-1 in the place of X
  std::optional<ShortTraces> short_;
};

}  // namespace blindfuse
