#include "host/publish/batch_comparison.h"

#include <algorithm>
#include <limits>

#include "src/base/errors.h"

namespace blindfuse {
namespace {

constexpr LayoutKind kOneKey{Mode::kPacked, 1, false, std::nullopt};

LayoutKind kind_for(const BatchCode& batch) { return {Mode::kPacked, 1, false, batch}; }

BatchCode usual_code(uint32_t keys_per_request) {
  return {keys_per_request, usual_bucket_count(keys_per_request)};
}

// Of those whose packing tables take at most this many times the bytes of the matrix; nullptr if
// there are none.
const Plan* fewest_bytes(const std::vector<Plan>& plans, uint64_t matrices) {
  const Plan* best = nullptr;
  for (const Plan& plan : plans) {
    // Divided, so that "any" does not overflow.
    const bool is_allowed =
        plan.layout.packing_table_bytes() / matrices <= plan.layout.matrix_bytes();
    if (is_allowed && (best == nullptr || plan.total_bytes < best->total_bytes)) best = &plan;
  }
  return best;
}

void add_new(std::vector<Plan>& compared, const Plan& plan) {
  if (std::ranges::find(compared, plan.layout, &Plan::layout) == compared.end()) {
    compared.push_back(plan);
  }
}

uint32_t keys_of(const Layout& layout) { return layout.batch ? layout.batch->keys_per_request : 1; }

}  // namespace

std::optional<Plan> best_for_one_key(const PlanRequest& request) {
  PlanRequest open = request;
  open.shard_count.reset();
  open.query_bits.reset();
  open.response_bits.reset();
  open.hint_bits.reset();
  const std::vector<Plan> plans = plans_of_kind(open, kOneKey);
  if (plans.empty()) return std::nullopt;
  return cheapest(plans);
}

std::vector<Plan> batch_plans_worth_comparing(const PlanRequest& request, const Plan& chosen) {
  invariant(request.batch.has_value(), "layouts for several keys are compared");
  std::vector<Plan> compared = {chosen};
  PlanRequest open = request;
  open.shard_count.reset();
  const std::vector<Plan> plans = plans_of_kind(open, kind_for(*request.batch));
  for (const uint64_t matrices :
       {uint64_t{1}, kBatchTablesPerMatrix, uint64_t{4}, std::numeric_limits<uint64_t>::max()}) {
    if (const Plan* best = fewest_bytes(plans, matrices)) add_new(compared, *best);
  }
  const uint32_t keys = request.batch->keys_per_request;
  for (const uint32_t other : {keys / 4, 4 * keys}) {
    if (other < kKeysPerRequestMin || other > kKeysPerRequestMax) continue;
    const std::vector<Plan> others = plans_of_kind(open, kind_for(usual_code(other)));
    if (!others.empty()) add_new(compared, cheapest(others));
  }
  return compared;
}

double bytes_per_key(const Layout& layout) {
  return static_cast<double>(request_bytes(layout)) / keys_of(layout);
}

double passes_per_key(const Layout& layout, const Layout& one_key) {
  return static_cast<double>(layout.matrix_bytes()) / keys_of(layout) /
         static_cast<double>(one_key.matrix_bytes());
}

std::optional<uint32_t> keys_that_pay(const Layout& layout, const Layout& one_key) {
  const uint64_t keys = request_bytes(layout) / request_bytes(one_key) + 1;
  if (keys > keys_of(layout)) return std::nullopt;
  return static_cast<uint32_t>(keys);
}

}  // namespace blindfuse
