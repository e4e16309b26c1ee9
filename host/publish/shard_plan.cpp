#include "host/publish/shard_plan.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <string>

#include "src/arithmetic/packing_table.h"
#include "src/arithmetic/ring/ring_dimension.h"
#include "src/base/errors.h"
#include "src/protocol/epoch_table.h"
#include "src/protocol/public_matrix.h"

namespace blindfuse {

namespace {

uint64_t records_of(const PlanRequest& request) {
  return request.key_count * (request.batch ? kBucketChoices : 1);
}

// Numbers of shards: 2^k and 3 * 2^k, or, with finer steps, eight between two powers. In order.
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

// The first level's words must be exact where there is a second one, so that they have few bits:
// each one more halves the room for the second level's noise, and more than 13 make that of the
// first one no more than 2 % larger (docs/PARAMETERS.md, section 7).
constexpr uint32_t kWordBitsMax = 13;

// Does the work of plan_shards() for layouts with a second level.
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

uint64_t expected_fullest_shard(const PlanRequest& request, uint32_t shard_count) {
  if (request.kind == DatabaseKind::kIndex) {
    return (request.key_count + shard_count - 1) / shard_count;
  }
  return expected_fullest_shard(records_of(request), shard_count);
}

// All buckets have as many shards.
std::vector<uint32_t> shard_choices(const PlanRequest& request) {
  if (request.shard_count) {
    if (request.batch) check_fixed_shards(*request.shard_count, *request.batch);
    return {*request.shard_count};
  }
  // There are a few per cent between neighbours with a second level, where more shards cost hardly
  // any bytes but memory, and with several keys, where memory decides.
  const uint32_t steps = request.levels == 2 || request.batch ? 8 : 2;
  const uint32_t buckets = request.batch ? request.batch->bucket_count : 1;
  std::vector<uint32_t> choices = shard_grid(steps, kShardCountMax / buckets);
  for (uint32_t& choice : choices) choice *= buckets;
  // Each shard should have a few records.
  const uint64_t records = records_of(request);
  std::erase_if(choices, [&](uint32_t s) { return s > buckets && records / s < 16; });
  return choices;
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

void refuse_shards(const PlanRequest& request, uint32_t shard_count, uint64_t fullest_shard) {
  Layout layout = layout_with_rows(request, shard_count, fullest_shard);
  layout.query_bits = request.query_bits.value_or(32);
  layout.response_bits = request.response_bits.value_or(32);
  layout.hint_bits = request.hint_bits.value_or(32);
  if (request.levels == 2 && layout.mode() == Mode::kPacked) refuse_two_levels(request, layout);
  check_layout(layout);
  throw InputError(
      "no layout fits these keys and choices; leave --shards and the numbers of bits out");
}

namespace {

constexpr uint32_t kBitsMin = 16, kBitsMax = 32;
static_assert(kShortKeyColumnsMax == kPackColumns / 2);

bool meets_failure_bound(const Layout& layout) {
  const SecondLevel& second = *layout.second;
  const SecondNoise noise = second_noise(layout.second_row_count(), layout.record_bytes(),
                                         layout.response_bits, second.query_bits, second.mask_bits,
                                         second.response_bits, layout.second_key_switches());
  return noise.log2_failure <= kLevelFailureLog2Max;
}

uint64_t bytes_of(const Layout& layout) { return layout.query_bytes() + layout.response_bytes(); }

// The fewest bits of the response that leave the failures few enough, if there are any.
bool choose_response_bits(Layout& layout) {
  uint32_t& bits = layout.second->response_bits;
  bits = kBitsMax;
  if (!meets_failure_bound(layout)) return false;
  for (bits = layout.response_bits + 1; !meets_failure_bound(layout); ++bits) {
  }
  return true;
}

bool is_better(const Layout& layout, const std::optional<Layout>& best) {
  return !best || bytes_of(layout) < bytes_of(*best);
}

// Finds the layout with the fewest bytes among those with these groups. A plan tries tens of
// thousands of groups: those are left out that cannot be better, or decode with no number of the
// bits that are still open.
void choose_bits(Layout tried, std::optional<Layout>& best) {
  SecondLevel& second = *tried.second;
  const uint32_t fewest = tried.response_bits + 1;
  for (second.query_bits = kBitsMin; second.query_bits <= kBitsMax; ++second.query_bits) {
    second.mask_bits = kBitsMin;
    second.response_bits = fewest;
    if (!is_better(tried, best)) return;  // nor are more bits
    second.mask_bits = second.response_bits = kBitsMax;
    if (!meets_failure_bound(tried)) continue;
    for (second.mask_bits = kBitsMin; second.mask_bits <= kBitsMax; ++second.mask_bits) {
      second.response_bits = fewest;
      if (!is_better(tried, best)) break;
      if (choose_response_bits(tried) && is_better(tried, best)) best = tried;
    }
  }
}

}  // namespace

std::optional<SecondLevel> plan_second_level(const Layout& layout, bool has_short_key) {
  const uint32_t record_bytes = layout.record_bytes();
  const uint32_t most = has_short_key ? kShortKeyColumnsMax : static_cast<uint32_t>(kPackColumns);
  if (has_short_key && record_bytes > most) return std::nullopt;
  const uint32_t groups =
      std::clamp<uint32_t>(most / std::max(1u, record_bytes), 1, layout.shard_count);
  std::optional<Layout> best;
  Layout tried = layout;
  uint32_t rows_before = 0;
  for (uint32_t g = 1; g <= groups; ++g) {
    tried.second = SecondLevel{.group_shards = g};
    // One shard fewer makes as many rows, so columns and the key only become more.
    if (tried.second_row_count() == rows_before) continue;
    rows_before = tried.second_row_count();
    if (has_short_key) {
      tried.second->key_order = std::max(2u, std::bit_ceil(tried.second_column_count()));
    }
    choose_bits(tried, best);
  }
  if (!best) return std::nullopt;
  return best->second;
}

}  // namespace blindfuse
