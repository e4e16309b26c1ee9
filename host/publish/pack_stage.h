// The second stage of a build for packed responses: packing tables and masks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "host/database/directory.h"
#include "host/publish/database_writer.h"
#include "host/system/worker_threads.h"
#include "src/arithmetic/packing_table.h"
#include "src/engine/engine_maker.h"
#include "src/protocol/epoch_table.h"
#include "src/protocol/public_polynomials.h"

namespace blindfuse {

struct PackStageResult {
  std::vector<PackEntry> packs;  // all, in order
  uint32_t rebuilt = 0;          // of them
};

// Writes packs/<sha256>.pack and hints/<sha256>.hint, the mask, unsynced. It does so for every pack
// with columns of a shard whose matrix differs from the one noted in `previous`, and for every pack
// whose files are missing or damaged. The matrices of `shards` are written. previous: empty, or the
// table of an epoch with the same layout and seed. `engines` determines how many packs are made at
// a time, and their memory.
PackStageResult build_packs(const DatabaseDirectory& directory, DatabaseWriter& writer,
                            const Layout& layout, const MatrixSeed& seed, const ShardTable& shards,
                            const EpochTable& previous, const EngineMaker& engines,
                            WorkerThreads& threads);

// The data from which PackBatches makes packing tables and masks. The matrices of `shards` are
// written.
struct PackSource {
  const DatabaseDirectory& directory;
  const Layout& layout;
  const ShardTable& shards;
  const ring::PublicPolynomials& polynomials;

  static constexpr uint64_t first_column(uint32_t pack) { return uint64_t{pack} * kPackColumns; }
  // The last pack may have fewer than 1024.
  uint64_t column_count(uint32_t pack) const {
    return std::min<uint64_t>(kPackColumns, layout.column_count() - first_column(pack));
  }
  // 0 if requests are not for several keys.
  uint32_t bucket_of(uint64_t column) const {
    return static_cast<uint32_t>(column / layout.bucket_column_count());
  }
};

class PackBatches {
 public:
  // Makes packs from the shards' files, some at a time. All arguments outlive it. Takes the memory
  // of this maker's pack makers, and 4 bytes a row for each bucket of the packs that are made at a
  // time.
  PackBatches(const PackSource& source, const EngineMaker& engines, WorkerThreads& threads);

  // Called with the number of further columns that are done; any thread.
  using OnColumns = std::function<void(uint64_t count)>;
  // Takes the i-th table and mask (coefficients modulo the packing modulus), which it may alter;
  // any thread.
  using Write =
      std::function<void(size_t i, MutablePackingTable table, ring::MutablePolynomial mask)>;

  // The largest number of packs that make() takes.
  size_t packs_max() const;
  // Makes packs in ascending order. Calls `write` once for each. If the engines compute on a
  // device, one of the packs is made again on the processor before it is written. Throws InputError
  // if a shard's file has changed, ResourceError, DeviceLostError if the two packs differ, and the
  // exceptions of `write`.
  void make(std::span<const uint32_t> packs, const OnColumns& on_columns, const Write& write);

 private:
  // The buckets that columns of some packs belong to, in ascending order, and their public
  // polynomials, R words each.
  struct Buckets {
    std::vector<uint32_t> numbers;
    std::vector<uint32_t> blocks;

    size_t place_of(uint32_t bucket) const {
      return static_cast<size_t>(std::ranges::lower_bound(numbers, bucket) - numbers.begin());
    }
  };

  Buckets buckets_of(std::span<const uint32_t> packs) const;
  std::unique_ptr<PackMaker> maker_of(std::span<const uint32_t> packs, const Buckets& buckets,
                                      const OnColumns& on_columns);
  void require_right(uint32_t pack, PackingTable table,
                     std::span<const uint32_t, ring::kDimension> mask) const;

  const PackSource source_;
  const EngineMaker& engines_;
  WorkerThreads& threads_;
  const std::vector<uint32_t> key_masks_;
};

}  // namespace blindfuse
