#include "host/cpu/packing/batch_packer.h"

#include <algorithm>
#include <utility>

#include "host/system/memory.h"
#include "src/base/errors.h"

namespace blindfuse {

using ring::kDimension;

namespace {

// A table is read by whole groups of points; this many of them are one thread's share at a time,
// 0.8 MB. So 32 threads have work even if there is only one pack.
constexpr size_t kGroupsAtOnce = 4;
constexpr size_t kSharesOfTable = kPointGroups / kGroupsAtOnce;

void reserve(const char* what, uint64_t bytes, std::shared_ptr<uint8_t>& memory, size_t& size) {
  if (bytes <= size) return;
  memory = nullptr;  // not both at the same time
  size = 0;
  const auto mapped = map_memory(what, bytes);
  memory = {mapped, static_cast<uint8_t*>(mapped.get())};
  size = bytes;
}

}  // namespace

BatchPacker::BatchPacker(std::vector<SharedPackingTable> tables, WorkerThreads& threads,
                         const RingKernel& kernel)
    : tables_(std::move(tables)), threads_(threads), kernel_(kernel), packer_(kernel) {}

void BatchPacker::pack(std::span<const Query> queries) {
  Tasks tasks(tables_.size());
  for (size_t t = 0; t < tables_.size(); ++t) {
    const size_t first = t * kPackColumns;
    for (const Query& query : queries) {
      const size_t count = std::min(kPackColumns, query.words.size() - first);
      tasks[t].push_back({query.keys, query.words.subspan(first, count),
                          query.bodies.subspan(t * kDimension).first<kDimension>()});
    }
  }
  if (pays(queries.size())) {
    sum_together(*kernel_.batch, queries);
  } else {
    sum_one_table_at_a_time(tasks);
  }
  threads_.run_each(tables_.size() * queries.size(), [&](unsigned, size_t one) {
    packer_.finish(tasks[one / queries.size()][one % queries.size()]);
  });
}

bool BatchPacker::pays(size_t query_count) const {
  if (kernel_.batch == nullptr) return false;
  return query_count * (tables_.size() / set_count(*kernel_.batch)) >= kernel_.batch->products_min;
}

size_t BatchPacker::set_count(const BatchSums& sums) const {
  return (tables_.size() + sums.tables_max - 1) / sums.tables_max;
}

void BatchPacker::sum_one_table_at_a_time(const Tasks& tasks) {
  threads_.run_each(tables_.size() * kSharesOfTable, [&](unsigned, size_t share) {
    const size_t t = share / kSharesOfTable;
    const size_t group = share % kSharesOfTable * kGroupsAtOnce;
    packer_.sum_groups(PackingTable(tables_[t].get(), kTableWords), tasks[t], group,
                       group + kGroupsAtOnce);
  });
}

void BatchPacker::arrange_keys(const BatchSums& sums, std::span<const uint32_t* const> keys) {
  const size_t parts = sums.groups(keys.size()) * sums.key_parts;
  threads_.run_each(parts, [&](unsigned, size_t part) {
    const size_t first = part / sums.key_parts * sums.queries_together;
    const auto some = keys.subspan(first, std::min(sums.queries_together, keys.size() - first));
    sums.arrange_keys(some.data(), some.size(), part % sums.key_parts,
                      arranged_keys_.get() + part * sums.key_part_bytes);
  });
}

void BatchPacker::sum_together(const BatchSums& sums, std::span<const Query> queries) {
  const size_t sets = set_count(sums);
  const size_t set_max = (tables_.size() + sets - 1) / sets;
  const size_t scratch_each = sums.scratch_bytes(set_max, queries.size());
  reserve("packing keys, arranged", sums.arranged_bytes(queries.size()), arranged_keys_,
          arranged_bytes_);
  reserve("packing", threads_.count() * scratch_each, scratch_, scratch_bytes_);
  std::vector<const uint32_t*> keys;
  for (const Query& query : queries) keys.push_back(query.keys);
  arrange_keys(sums, keys);

  threads_.run_each(sets * kPointGroups, [&](unsigned thread, size_t share) {
    const size_t group = share / sets;
    const size_t first = share % sets * tables_.size() / sets;
    const size_t last = (share % sets + 1) * tables_.size() / sets;
    std::vector<const uint32_t*> tables;
    for (size_t t = first; t < last; ++t) {
      tables.push_back(tables_[t].get() + table_place(group, 0, 0));
    }
    std::vector<uint32_t*> places;
    for (const Query& query : queries) {
      for (size_t t = first; t < last; ++t) {
        places.push_back(query.bodies.data() + t * kDimension + group * kPointsTogether);
      }
    }
    sums.sum({tables.data(), keys.data(), arranged_keys_.get(), tables.size(), queries.size(),
              group * kPointsTogether, scratch_.get() + thread * scratch_each, places.data()});
  });
}

}  // namespace blindfuse
