#include "host/publish/planner.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "src/base/errors.h"

namespace blindfuse {
namespace {

// Refuses what check_layout() would refuse, before any layout is made for the wrong set.
void check_batch_request(const PlanRequest& request) {
  if (!request.batch) return;
  const Mode mode =
      request.lwe != nullptr ? request.lwe->mode : request.mode.value_or(Mode::kPacked);
  if (mode == Mode::kPacked && request.levels == 1 && request.kind == DatabaseKind::kKeyword) {
    return;
  }
  throw InputError(
      "requests for several keys are for keyword databases, and for packed responses of one level");
}

PlanRequest with_set(PlanRequest request, const LweParams& set) {
  request.lwe = &set;
  return request;
}

void leave_out_large_tables(std::vector<Plan>& plans) {
  std::erase_if(plans, [](const Plan& plan) {
    const uint64_t tables = plan.layout.packing_table_bytes();
    return tables > kAutoPackingBytesMax && tables > plan.layout.matrix_bytes();
  });
}

// The plans of the packed mode that an operator need not ask for.
std::vector<Plan> unasked_packed_plans(const PlanRequest& request) {
  std::vector<Plan> plans;
  try {
    plans = plan_layouts(with_set(request, default_lwe_params(Mode::kPacked)));
  } catch (const InputError&) {
    return {};  // too many rows or too much noise, for this mode alone
  }
  leave_out_large_tables(plans);
  return plans;
}

}  // namespace

std::vector<Plan> plan_layouts(const PlanRequest& request) {
  std::vector<Plan> plans;
  for (uint32_t shard_count : shard_choices(request)) {
    const uint64_t fullest = expected_fullest_shard(request, shard_count);
    // Fewer shards can mean more rows than the noise, or the row count itself, allows.
    try {
      if (auto plan = plan_shards(request, shard_count, fullest)) plans.push_back(*plan);
    } catch (const InputError&) {
      if (request.shard_count) throw;
    }
  }
  if (plans.empty()) {
    const uint32_t shard_count = shard_choices(request).back();
    refuse_shards(request, shard_count, expected_fullest_shard(request, shard_count));
  }
  return plans;
}

std::vector<std::vector<Plan>> plan_modes(const PlanRequest& request) {
  check_batch_request(request);
  if (request.lwe != nullptr) {
    if (request.mode && *request.mode != request.lwe->mode) {
      throw InputError("the parameter set " + std::string(request.lwe->name) + " is for the mode " +
                       std::string(mode_name(request.lwe->mode)) + ", and not for " +
                       std::string(mode_name(*request.mode)));
    }
    std::vector<Plan> plans = plan_layouts(request);
    // An operator who asks for several keys a request accepts large tables.
    if (request.is_inherited && !request.batch) leave_out_large_tables(plans);
    if (plans.empty()) {
      throw InputError(
          "packing tables would take more than the matrix, and more than 256 MiB: say "
          "--mode packed if the server is to have them, or --mode hint");
    }
    return {std::move(plans)};
  }
  const bool is_open = !request.mode && !request.batch;
  const Mode first = request.mode.value_or(request.batch ? Mode::kPacked : Mode::kHint);
  std::vector<std::vector<Plan>> modes = {
      plan_layouts(with_set(request, default_lwe_params(first)))};
  if (is_open) {
    // Bits that leave room for the noise of packing leave it for a hint's: there is none without
    // it.
    std::vector<Plan> packed = unasked_packed_plans(request);
    if (!packed.empty()) modes.push_back(std::move(packed));
  }
  return modes;
}

LayoutKind kind_of(const Layout& layout) {
  return {layout.mode(), layout.levels(), layout.second && layout.second->key_order > 0,
          layout.batch};
}

std::vector<Plan> plans_of_kind(const PlanRequest& request, const LayoutKind& kind) {
  const bool is_of_set = request.lwe == nullptr || request.lwe->mode == kind.mode;
  if (!is_of_set || request.mode.value_or(kind.mode) != kind.mode) return {};
  PlanRequest one = request;
  if (one.lwe == nullptr) one.lwe = &default_lwe_params(kind.mode);
  one.levels = kind.levels;
  one.short_key = kind.short_key;
  one.batch = kind.batch;
  try {
    return plan_layouts(one);
  } catch (const InputError&) {
    return {};
  }
}

namespace {

const Plan& cheapest_for_several_keys(const std::vector<Plan>& plans) {
  const auto cost = [](const Plan& plan) {
    const Layout& layout = plan.layout;
    const uint64_t allowed =
        std::max(kAutoPackingBytesMax, kBatchTablesPerMatrix * layout.matrix_bytes());
    const bool is_large = layout.packing_table_bytes() > allowed;
    return std::tuple(is_large, is_large ? layout.pack_count() : 0, plan.total_bytes);
  };
  return *std::ranges::min_element(plans, {}, cost);
}

}  // namespace

const Plan& cheapest(const std::vector<Plan>& plans) {
  if (plans.front().layout.batch) return cheapest_for_several_keys(plans);
  const Plan* best = &*std::ranges::min_element(plans, {}, &Plan::total_bytes);
  if (best->layout.mode() != Mode::kPacked) return *best;
  const double allowed = kBytesForFewerPacks * static_cast<double>(best->total_bytes);
  const auto cost = [](const Plan& plan) {
    return std::pair(plan.layout.pack_count(), plan.total_bytes);
  };
  for (const Plan& plan : plans) {
    const bool is_allowed = static_cast<double>(plan.total_bytes) <= allowed;
    if (is_allowed && cost(plan) < cost(*best)) best = &plan;
  }
  return *best;
}

const Plan& cheapest(const std::vector<std::vector<Plan>>& modes) {
  const Plan* best = &cheapest(modes.front());
  for (const std::vector<Plan>& plans : modes) {
    const Plan& of_mode = cheapest(plans);
    if (of_mode.total_bytes < best->total_bytes) best = &of_mode;
  }
  return *best;
}

}  // namespace blindfuse
