#include "host/publish/plan_cost.h"

#include <algorithm>
#include <cmath>

#include "src/arithmetic/ring/ring_dimension.h"

namespace blindfuse {
namespace {

// Of a query in a full batch. It cannot be less than the time in which memory gives the bytes,
// which all queries of the batch share.
double batch_share(double multiply_adds, double rate, double bytes, const CoreRates& rates) {
  const double reads = bytes / rates.memory_bytes_per_second / static_cast<double>(kFullBatch);
  return std::max(multiply_adds / rate, reads);
}

// The polynomials from which a pack's key switches start.
double traces_seconds(uint32_t key_order, const CoreRates& rates) {
  if (key_order == 0) return rates.second_traces_seconds;
  return key_order * std::log2(key_order) * rates.second_short_trace_seconds;
}

// The same alone and in batches: no two queries share any of it.
double second_level_seconds(const Layout& layout, const CoreRates& rates) {
  if (!layout.second) return 0;
  constexpr auto kBlockRows = static_cast<uint32_t>(ring::kDimension);
  const uint32_t blocks = (layout.second_row_count() + kBlockRows - 1) / kBlockRows;
  const double packs = layout.second_pack_count();
  return packs * (layout.second_key_switches() * rates.second_switch_seconds +
                  traces_seconds(layout.second->key_order, rates)) +
         static_cast<double>(layout.second_column_count()) * blocks * rates.second_column_seconds;
}

}  // namespace

PlanCost plan_cost(const Plan& plan, const CoreRates& rates, uint64_t lookups) {
  const Layout& layout = plan.layout;
  const auto matrix = static_cast<double>(layout.matrix_bytes());
  const auto tables = static_cast<double>(layout.packing_table_bytes());
  const double digits = tables / sizeof(uint32_t);
  const double second = second_level_seconds(layout, rates);
  PlanCost cost;
  if (layout.batch) cost.keys_per_request = layout.batch->keys_per_request;
  cost.alone_seconds = matrix / rates.scan_alone_bytes_per_second +
                       tables / rates.pack_alone_bytes_per_second + second;
  cost.batch_seconds =
      batch_share(matrix, rates.scan_batch_multiply_adds_per_second, matrix, rates) +
      batch_share(digits, rates.pack_batch_multiply_adds_per_second, tables, rates) + second;
  cost.server_bytes = layout.matrix_bytes() + layout.packing_table_bytes() + layout.hint_bytes();
  cost.dollars = static_cast<double>(plan.total_bytes) * kDollarsAGigabyte / 1e9 +
                 static_cast<double>(request_count(layout, lookups)) * cost.batch_seconds *
                     kDollarsACoreHour / 3600;
  return cost;
}

}  // namespace blindfuse
