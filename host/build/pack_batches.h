// Makes packing tables and masks, some packs at a time: by the host's threads, or by an engine.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "host/database/directory.h"
#include "host/engine_factory.h"
#include "host/worker_threads.h"
#include "src/packing_table.h"
#include "src/ring/public_polynomials.h"

namespace blindfuse {

inline constexpr size_t kPacksAtOnceMax = 16;

// What packs are made of. The matrices of `shards` are written.
struct PackSource {
  const DatabaseDirectory& directory;
  const Layout& layout;
  const ShardTable& shards;
  const ring::PublicPolynomials& polynomials;

  static constexpr uint64_t first_column(uint32_t pack) {
    return uint64_t{pack} * ring::kDimension;
  }
  // 2048 but for the last pack.
  uint64_t column_count(uint32_t pack) const {
    return std::min<uint64_t>(ring::kDimension, layout.column_count() - first_column(pack));
  }
};

class PackBatches {
 public:
  virtual ~PackBatches() = default;

  // Told how many more columns are through with what is done for each of them; any thread.
  using OnColumns = std::function<void(uint64_t count)>;
  // Takes the i-th table and mask (coefficients modulo the packing modulus), which it may alter;
  // any thread.
  using Write =
      std::function<void(size_t i, MutablePackingTable table, ring::MutablePolynomial mask)>;

  // Packs that make() takes, at most.
  virtual size_t packs_max() const = 0;
  // Of packs in ascending order. Calls `write` once for each.
  virtual void make(std::span<const uint32_t> packs, const OnColumns& on_columns,
                    const Write& write) = 0;
};

// What they are given outlives both. By the host: takes 84 MB for each pack that it makes at a
// time, and 8 bytes a row.
std::unique_ptr<PackBatches> make_host_pack_batches(const PackSource& source,
                                                    WorkerThreads& threads);
// By engines from this maker, which hold all columns of the packs that they make at a time: at most
// 4 GiB, or one pack. None (nullptr) for engines that have no PackMaker, and nothing is lost by
// trying.
std::unique_ptr<PackBatches> make_engine_pack_batches(const PackSource& source,
                                                      const EngineMaker& make_engine,
                                                      WorkerThreads& threads);

}  // namespace blindfuse
