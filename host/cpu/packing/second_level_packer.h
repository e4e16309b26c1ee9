// Packs the words of one row of a packed response, which the query asks for: the second level of
// packed responses. The words of all rows are a small matrix, which is multiplied with the query's
// second words; its mask depends on the response, and so its digits come from no table
// (docs/PROTOCOL.md, section 20).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "host/cpu/packing/key_switcher.h"
#include "host/cpu/packing/ring_kernels.h"
#include "host/cpu/packing/short_traces.h"
#include "host/cpu/packing/traces.h"
#include "src/arithmetic/packing_table.h"

namespace blindfuse {

class SecondLevelPacker {
 public:
  // blocks: the public polynomials a2_j of all blocks of 2048 rows, one after another, in the
  // evaluation domain of Ntt. key_order: m, of a short key; 0: the key is that for X -> X^5.
  // key_masks: of this key, as PublicPolynomials::key_masks() or short_key_masks() has them.
  SecondLevelPacker(std::span<const uint32_t> blocks, uint32_t key_order,
                    const std::vector<uint32_t>& key_masks,
                    const RingKernel& kernel = ring_kernels().front());

  // What is between the steps of a pack: 17 MB, or with a short key of order m 16 KiB for each unit
  // of m. For one pack after another. Throws ResourceError.
  class Work {
   public:
    explicit Work(const SecondLevelPacker& packer);

   private:
    friend class SecondLevelPacker;
    std::optional<Traces> traces_;       // with the key for X -> X^5
    std::vector<uint32_t> rows_, more_;  // with a short key: ShortTraces::transform
    std::array<uint32_t, kPackColumns> sums_{};
  };

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

  // All steps of a pack. Any thread.
  void pack(const Task& task, Work& work) const;
  // The same with work of its own.
  void pack(const Task& task) const {
    Work work(*this);
    pack(task, work);
  }

  // The steps, for callers with threads: all column parts, then all trace parts, then the switches.
  // Different parts may be on different threads. Column parts have a transform for each column and
  // block of rows; trace parts a transform for each point, or one part of m log2(m) / 2 butterflies
  // for each point; and the switches four transforms for each of 1023, or m - 1.
  static size_t column_parts(const Task& task);
  size_t trace_parts() const;
  void make_columns(const Task& task, size_t part, Work& work) const;
  void make_traces(const Task& task, size_t part, Work& work) const;
  void switch_keys(const Task& task, Work& work) const;

 private:
  static constexpr size_t kTogether = 16;  // columns of a part: a line of the cache
  // Columns that lie a power of two apart would share few lines of the cache.
  static constexpr size_t kColumnPitch = ring::kDimension + 16;
  struct Range {
    size_t first;
    size_t count;
  };

  void read_columns(const Task& task, Range rows, Range columns,
                    std::span<uint32_t, kTogether * kColumnPitch> entries) const;
  template <typename Trace>
  void switch_keys(const Task& task, size_t count, size_t power, const Work& work,
                   const Trace& trace) const;

  const KeySwitcher switcher_;
  std::vector<uint32_t> scaled_blocks_;  // times 2^32, and conjugated: X^-1 in the place of X
  std::optional<ShortTraces> short_;
};

}  // namespace blindfuse
