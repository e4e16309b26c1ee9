// The instruction sets that packing has code for: transforms, and the sums over a packing table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "host/packing/transform_tables.h"
#include "src/ring/ring_transform.h"

namespace blindfuse {

// Sums of 16 points of a packing table for several queries.
struct GroupTask {
  const uint32_t* table;        // the group's words
  const uint32_t* const* keys;  // PackingKeys::words() of each query
  size_t query_count;
  size_t point;    // the first; a multiple of 16
  uint32_t* sums;  // 16 for each query, modulo the packing modulus
};

struct RingKernel {
  std::string_view name;
  size_t lanes;  // 0: the transforms are ring::portable_transform's
  void (*forward)(const TransformView& view, uint32_t* polynomial);
  void (*inverse)(const TransformView& view, uint32_t* polynomial);
  void (*add_products)(const TransformView& view, const uint32_t* a, const uint32_t* b,
                       uint32_t* sum);
  void (*sum_group)(const GroupTask& task);
};

// Those that this processor can run, the best first; the last is "portable".
const std::vector<RingKernel>& ring_kernels();

std::unique_ptr<const ring::RingTransform> make_transform(const RingKernel& kernel,
                                                          uint32_t modulus);
extern const RingKernel kPortableRingKernel;
#if defined(__x86_64__)
extern const RingKernel kAvx2RingKernel;
extern const RingKernel kAvx512RingKernel;
#endif

}  // namespace blindfuse
