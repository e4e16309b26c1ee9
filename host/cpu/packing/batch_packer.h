// Packs the responses of a batch of queries on several threads, with all packs of the responses.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "host/cpu/packing/response_packer.h"
#include "host/cpu/packing/ring_kernels.h"
#include "host/system/worker_threads.h"
#include "src/arithmetic/packing_table.h"

namespace blindfuse {

class BatchPacker {
 public:
  struct Query {
    const uint32_t* keys;  // PackingKeys::words()
    // r_c modulo 2^32 of all columns.
    std::span<const uint32_t> words;
    // The memory for the packed responses: 2048 coefficients modulo the packing modulus for each
    // table.
    std::span<uint32_t> bodies;
  };

  // tables: at least one; one for every 1024 columns, and one for the remaining columns. The
  // threads outlive this.
  BatchPacker(std::vector<SharedPackingTable> tables, WorkerThreads& threads,
              const RingKernel& kernel = ring_kernels().front());

  // Throws ResourceError if there is no memory for this many queries at a time.
  void pack(std::span<const Query> queries);

  // Whether a batch of this size is packed by the kernel's sums of batches, which are then the
  // faster ones.
  bool pays(size_t query_count) const;

 private:
  using Tasks = std::vector<std::vector<ResponsePacker::Task>>;  // by table, by query

  // The sets of tables, of nearly the same size, for which such sums are made together.
  size_t set_count(const BatchSums& sums) const;
  void sum_one_table_at_a_time(const Tasks& tasks);
  void sum_together(const BatchSums& sums, std::span<const Query> queries);
  void arrange_keys(const BatchSums& sums, std::span<const uint32_t* const> keys);

  const std::vector<SharedPackingTable> tables_;
  WorkerThreads& threads_;
  const RingKernel kernel_;
  const ResponsePacker packer_;
  // The memory of sum_together(), in all and for each thread. It only grows.
  std::shared_ptr<uint8_t> arranged_keys_, scratch_;
  size_t arranged_bytes_ = 0, scratch_bytes_ = 0;
};

}  // namespace blindfuse
