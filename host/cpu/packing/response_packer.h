// Packs the response words of up to 1024 columns into one polynomial under the client's secret.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "host/cpu/packing/packing_keys.h"
#include "host/cpu/packing/ring_kernels.h"
#include "src/arithmetic/packing_table.h"
#include "src/arithmetic/ring/ntt.h"

namespace blindfuse {

class ResponsePacker {
 public:
  explicit ResponsePacker(const RingKernel& kernel = ring_kernels().front())
      : kernel_(kernel), ntt_(make_ntt(kernel, ring::kPackingModulus)) {}

  struct Task {
    const uint32_t* keys;  // PackingKeys::words()
    // r_c modulo 2^32 of the columns of the table, in their order; at most 1024.
    std::span<const uint32_t> words;
    // The memory for the packed response: coefficients modulo the packing modulus, as
    // PackingTableBuilder::build defines them. The first 1024 are those of the columns.
    std::span<uint32_t, ring::kDimension> body;
  };

  // Packs several queries in one pass over the table. Each takes 6.3 million multiplications. Any
  // thread.
  void pack(PackingTable table, std::span<const Task> tasks) const;

  // The same in parts, for several threads: groups first .. last - 1 of kPointGroups into every
  // body, in any order; and, after a task has all of them, the remaining steps.
  void sum_groups(PackingTable table, std::span<const Task> tasks, size_t first, size_t last) const;
  void finish(const Task& task) const;

 private:
  const RingKernel kernel_;
  std::unique_ptr<const ring::Ntt> ntt_;
};

}  // namespace blindfuse
