#include "host/publish/planner.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <tuple>
#include <utility>

#include "host/publish/second_level_plan.h"
#include "src/arithmetic/ring/ring_dimension.h"
#include "src/base/errors.h"
#include "src/protocol/epoch_table.h"
#include "src/protocol/public_matrix.h"

namespace blindfuse {
namespace {

constexpr uint32_t kQueryBitsMin = 24;
constexpr uint32_t kResponseBitsMin = 9;
constexpr uint32_t kHintBitsMin = 16;

struct BitRange {
  uint32_t low;
  uint32_t high;
};

BitRange choices(std::optional<uint32_t> fixed, uint32_t low) {
  return fixed ? BitRange{*fixed, *fixed} : BitRange{low, 32};
}

uint64_t rounded_up(uint64_t count, uint64_t unit) { return (count + unit - 1) / unit * unit; }

uint64_t records_of(const PlanRequest& request) {
  return request.key_count * (request.batch ? kBucketChoices : 1);
}

Layout layout_with_rows(const PlanRequest& request, uint32_t shard_count, uint64_t fullest_shard) {
  invariant(request.lwe != nullptr, "a layout is planned for a parameter set");
  Layout layout;
  layout.kind = request.kind;
  layout.key_count = request.key_count;
  layout.shard_count = shard_count;
  layout.record = request.record;
  layout.lwe = request.lwe;
  layout.batch = request.batch;
  uint64_t rows = 0;
  if (request.kind == DatabaseKind::kIndex) {
    rows = rounded_up(fullest_shard, kPanelRows);
    if (rows > uint64_t{1} << 31) throw InputError("more than 2^31 rows; use more shards");
    layout.arity = 1;
  } else {
    const FuseShape shape = fuse_shape(fullest_shard, request.arity);
    rows = shape.row_count;
    layout.arity = shape.arity;
    layout.segment_length = shape.segment_length;
  }
  if (layout.mode() == Mode::kPacked) {
    // Segments are powers of two, as blocks are: there are still whole ones, a few more.
    rows = rounded_up(rows, ring::kDimension);
    if (rows > kPackedRowsMax) {
      throw InputError("more than 2^24 rows; use more shards" +
                       std::string(request.batch ? "" : ", or --mode hint"));
    }
  }
  layout.row_count = static_cast<uint32_t>(rows);
  if (layout.batch && layout.query_word_count() > kQueryWordsMax) {
    throw InputError("requests for " + std::to_string(layout.batch->keys_per_request) +
                     " keys would have " + std::to_string(layout.query_word_count()) +
                     " words, one for each row of " + std::to_string(layout.bucket_count()) +
                     " buckets, and at most 2^26 are allowed; use more shards, or fewer "
                     "--keys-per-request");
  }
  return layout;
}

uint64_t sync_bytes(const Layout& layout) {
  return epoch_table_bytes(layout) + layout.hint_bytes();
}

uint64_t total_bytes(const Layout& layout, uint64_t lookups) {
  return sync_bytes(layout) + request_count(layout, lookups) * request_bytes(layout);
}

// 2^k and 3 * 2^k, or, with finer steps, eight between two powers. In order.
std::vector<uint32_t> shard_grid(uint32_t steps, uint32_t most) {
  std::vector<uint32_t> counts = {1};
  for (uint32_t power = 2; power <= most; power *= 2) {
    for (uint32_t step = 0; step < std::min(steps, power); ++step) {
      const uint32_t count = power + power / std::min(steps, power) * step;
      if (count <= most) counts.push_back(count);
    }
  }
  return counts;
}

void check_fixed_shards(uint32_t shard_count, const BatchCode& batch) {
  if (shard_count % batch.bucket_count == 0) return;
  const std::string buckets = std::to_string(batch.bucket_count);
  const uint32_t below = shard_count / batch.bucket_count * batch.bucket_count;
  const uint32_t above = below + batch.bucket_count;
  throw InputError("--shards " + std::to_string(shard_count) + " is not a multiple of the " +
                   buckets + " buckets of requests for " + std::to_string(batch.keys_per_request) +
                   " keys; take " + (below > 0 ? std::to_string(below) + " or " : "") +
                   std::to_string(above) + ", or leave --shards out");
}

// All buckets have as many shards.
std::vector<uint32_t> shard_choices(const PlanRequest& request) {
  if (request.shard_count) {
    if (request.batch) check_fixed_shards(*request.shard_count, *request.batch);
    return {*request.shard_count};
  }
  // With a second level, where more shards cost hardly any bytes but memory, and with several keys,
  // where memory decides, there are a few per cent between neighbours.
  const uint32_t steps = request.levels == 2 || request.batch ? 8 : 2;
  const uint32_t buckets = request.batch ? request.batch->bucket_count : 1;
  std::vector<uint32_t> choices = shard_grid(steps, kShardCountMax / buckets);
  for (uint32_t& choice : choices) choice *= buckets;
  // As long as a shard has a few records.
  const uint64_t records = records_of(request);
  std::erase_if(choices, [&](uint32_t s) { return s > buckets && records / s < 16; });
  return choices;
}

uint64_t fullest_of(const PlanRequest& request, uint32_t shard_count) {
  if (request.kind == DatabaseKind::kIndex) {
    return (request.key_count + shard_count - 1) / shard_count;
  }
  return expected_fullest_shard(records_of(request), shard_count);
}

// What check_layout() would refuse, before any layout is made for the wrong set.
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
    return tables > kPackingBytesUnasked && tables > plan.layout.matrix_bytes();
  });
}

// Those of the packed mode that need not be asked for.
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

// With a second level, words must be exact, so that they have few bits: each one more halves the
// room for the second level's noise, and more than 13 make that of the first one no more than 2 %
// larger (docs/PARAMETERS.md, section 7).
constexpr uint32_t kWordBitsMax = 13;

// The same as plan_shards() with a second level.
std::optional<Plan> plan_two_levels(const PlanRequest& request, Layout layout) {
  std::optional<Plan> best;
  const BitRange query = choices(request.query_bits, kQueryBitsMin);
  const BitRange response = choices(request.response_bits, kResponseBitsMin);
  const BitRange hint = choices(request.hint_bits, kHintBitsMin);
  for (uint32_t r = response.low; r <= std::min(response.high, kWordBitsMax); ++r) {
    layout.second.reset();
    layout.response_bits = r;
    layout.second = plan_second_level(layout, request.short_key);
    if (!layout.second) continue;
    for (uint32_t q = query.low; q <= query.high; ++q) {
      for (uint32_t h = hint.low; h <= hint.high; ++h) {
        layout.query_bits = q;
        layout.hint_bits = h;
        const bool is_sound =
            layout.has_enough_error() && layout.noise().log2_failure <= kLevelFailureLog2Max;
        if (!is_sound) continue;
        const uint64_t total = total_bytes(layout, request.lookups_per_client);
        if (!best || total < best->total_bytes) best = {layout, sync_bytes(layout), total};
        break;  // more hint bits only cost more
      }
    }
  }
  return best;
}

std::string one_decimal(double number) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.1f", number);
  return text.data();
}

// The layout has the most bits that the operator's choices leave open.
[[noreturn]] void refuse_two_levels(const PlanRequest& request, Layout layout) {
  const std::string columns = std::to_string(kShortKeyColumnsMax);
  const bool fits_short_key = layout.record_bytes() <= kShortKeyColumnsMax;
  if (request.short_key && !fits_short_key) {
    throw InputError("records of " + std::to_string(layout.record_bytes()) +
                     " bytes are too long for a short key, which packs at most " + columns +
                     " columns; leave --short-key out, or --levels");
  }
  const BitRange response = choices(request.response_bits, kResponseBitsMin);
  if (response.low > kWordBitsMax) {
    throw InputError("response_bits is " + std::to_string(response.low) +
                     "; with two levels it is at most " + std::to_string(kWordBitsMax) +
                     ", so that the second level finds the words exactly; leave --response-bits "
                     "out, or take fewer");
  }
  uint32_t& bits = layout.response_bits;
  // More bits only help the first level, and only harm the second one.
  const uint32_t most = std::min(response.high, kWordBitsMax);
  for (bits = response.low; bits <= most; ++bits) {
    if (layout.noise().log2_failure <= kLevelFailureLog2Max) break;
  }
  if (bits > most) {
    bits = most;
    throw InputError("the first of two levels would fail with probability up to 2^" +
                     one_decimal(layout.noise().log2_failure) + "; at most 2^-41 is allowed (" +
                     std::to_string(layout.row_count) + " rows, query_bits " +
                     std::to_string(layout.query_bits) + ", response_bits " + std::to_string(bits) +
                     ", hint_bits " + std::to_string(layout.hint_bits) +
                     "); use more bits or more shards, or leave --levels out");
  }
  throw InputError("the second level cannot find words of " + std::to_string(bits) +
                   " response_bits exactly in groups of any size; " +
                   (request.response_bits
                        ? "use fewer --response-bits"
                        : "use more query bits, hint bits or shards, so that fewer do") +
                   (request.short_key || !fits_short_key ? "" : ", or add --short-key") +
                   ", or leave --levels out");
}

// Says by how much the best that the operator's choices leave open fails.
[[noreturn]] void refuse(const PlanRequest& request) {
  const uint32_t shard_count = request.shard_count.value_or(shard_choices(request).back());
  Layout layout = layout_with_rows(request, shard_count, fullest_of(request, shard_count));
  layout.query_bits = request.query_bits.value_or(32);
  layout.response_bits = request.response_bits.value_or(32);
  layout.hint_bits = request.hint_bits.value_or(32);
  if (request.levels == 2 && layout.mode() == Mode::kPacked) refuse_two_levels(request, layout);
  check_layout(layout);
  throw InputError("no layout fits these keys and choices");
}

}  // namespace

uint64_t request_count(const Layout& layout, uint64_t lookups) {
  const uint64_t keys = layout.batch ? layout.batch->keys_per_request : 1;
  return (lookups + keys - 1) / keys;
}

uint64_t request_bytes(const Layout& layout) {
  return layout.query_bytes() + layout.response_bytes();
}

uint64_t expected_fullest_shard(uint64_t record_count, uint32_t shard_count) {
  if (shard_count == 1) return record_count;
  const double mean = static_cast<double>(record_count) / shard_count;
  const double log_shards = std::log(shard_count);
  const double excess = std::sqrt(2.0 * mean * log_shards) + log_shards / 3.0;
  return std::min(record_count, static_cast<uint64_t>(std::ceil(mean + excess)));
}

std::optional<Plan> plan_shards(const PlanRequest& request, uint32_t shard_count,
                                uint64_t fullest_shard) {
  Layout layout = layout_with_rows(request, shard_count, fullest_shard);
  if (request.levels == 2 && layout.mode() == Mode::kPacked)
    return plan_two_levels(request, layout);
  std::optional<Plan> best;
  const BitRange query = choices(request.query_bits, kQueryBitsMin);
  const BitRange response = choices(request.response_bits, kResponseBitsMin);
  const BitRange hint = choices(request.hint_bits, kHintBitsMin);
  for (uint32_t q = query.low; q <= query.high; ++q) {
    for (uint32_t r = response.low; r <= response.high; ++r) {
      for (uint32_t h = hint.low; h <= hint.high; ++h) {
        layout.query_bits = q;
        layout.response_bits = r;
        layout.hint_bits = h;
        if (!layout.has_enough_error() || layout.noise().log2_failure > kFailureLog2Max) continue;
        const uint64_t total = total_bytes(layout, request.lookups_per_client);
        if (!best || total < best->total_bytes) best = {layout, sync_bytes(layout), total};
        break;  // more hint bits only cost more
      }
    }
  }
  return best;
}

std::vector<Plan> plan_layouts(const PlanRequest& request) {
  std::vector<Plan> plans;
  for (uint32_t shard_count : shard_choices(request)) {
    const uint64_t fullest = fullest_of(request, shard_count);
    // Fewer shards can mean more rows than the noise, or the row count itself, allows.
    try {
      if (auto plan = plan_shards(request, shard_count, fullest)) plans.push_back(*plan);
    } catch (const InputError&) {
      if (request.shard_count) throw;
    }
  }
  if (plans.empty()) refuse(request);
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
    // Several keys a request have been asked for, and take large tables.
    if (request.is_unasked && !request.batch) leave_out_large_tables(plans);
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

std::vector<std::vector<Plan>> plan_kinds(const PlanRequest& request) {
  std::vector<std::vector<Plan>> kinds = plan_modes(request);
  if (!request.levels_open || request.batch) return kinds;
  const bool is_asked = (request.mode || request.lwe != nullptr) && !request.is_unasked;
  for (const bool short_key : {false, true}) {
    std::vector<Plan> plans = plans_of_kind(request, {Mode::kPacked, 2, short_key});
    if (!is_asked) leave_out_large_tables(plans);
    if (!plans.empty()) kinds.push_back(std::move(plans));
  }
  return kinds;
}

namespace {

const Plan& cheapest_for_several_keys(const std::vector<Plan>& plans) {
  const auto cost = [](const Plan& plan) {
    const Layout& layout = plan.layout;
    const uint64_t allowed =
        std::max(kPackingBytesUnasked, kBatchTablesPerMatrix * layout.matrix_bytes());
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
