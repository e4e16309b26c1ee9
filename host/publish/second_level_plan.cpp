#include "host/publish/second_level_plan.h"

#include <algorithm>
#include <bit>

#include "src/arithmetic/packing_table.h"

namespace blindfuse {
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

// Of layouts with these groups, those with the fewest bytes. A plan tries tens of thousands of
// groups: what cannot be better, or decodes with no number of the bits that are still open, is left
// out.
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
    // With as many rows as one shard fewer makes, columns and the key only become more.
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
