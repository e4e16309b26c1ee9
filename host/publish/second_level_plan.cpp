#include "host/publish/second_level_plan.h"

#include <algorithm>
#include <bit>

#include "src/arithmetic/packing_table.h"

namespace blindfuse {
namespace {

constexpr uint32_t kBitsMin = 16, kBitsMax = 32;
constexpr uint32_t kOrderMax = static_cast<uint32_t>(kPackColumns) / 2;

double log2_failure(const Layout& layout) {
  const SecondLevel& second = *layout.second;
  return second_noise(layout.second_row_count(), layout.record_bytes(), layout.response_bits,
                      second.query_bits, second.mask_bits, second.response_bits,
                      layout.second_key_switches())
      .log2_failure;
}

uint64_t bytes_of(const Layout& layout) { return layout.query_bytes() + layout.response_bytes(); }

// Whether there are bits of the response that leave the failures few enough. More bits never make
// failures more frequent.
bool is_possible(Layout& layout) {
  layout.second->response_bits = kBitsMax;
  return log2_failure(layout) <= kLevelFailureLog2Max;
}

// The fewest bits of the response that leave the failures few enough, if there are any.
bool choose_response_bits(Layout& layout) {
  if (!is_possible(layout)) return false;
  uint32_t& bits = layout.second->response_bits;
  bits = layout.response_bits + 1;
  while (log2_failure(layout) > kLevelFailureLog2Max) ++bits;
  return true;
}

// Of the layouts with this many shards a group and this key, those that take fewer bytes than the
// best. Fewer bits of the response are not possible than one more than the words have.
void try_bits(Layout& tried, std::optional<Layout>& best) {
  SecondLevel& second = *tried.second;
  for (second.query_bits = kBitsMin; second.query_bits <= kBitsMax; ++second.query_bits) {
    second.mask_bits = kBitsMax;
    if (!is_possible(tried)) continue;
    for (second.mask_bits = kBitsMin; second.mask_bits <= kBitsMax; ++second.mask_bits) {
      second.response_bits = tried.response_bits + 1;
      if (best && bytes_of(tried) >= bytes_of(*best)) break;  // more bits only cost more
      if (!choose_response_bits(tried)) continue;
      if (!best || bytes_of(tried) < bytes_of(*best)) best = tried;
    }
  }
}

}  // namespace

std::optional<SecondLevel> plan_second_level(const Layout& layout, bool has_short_key) {
  const uint32_t record_bytes = layout.record_bytes();
  const uint32_t most = has_short_key ? kOrderMax : static_cast<uint32_t>(kPackColumns);
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
    try_bits(tried, best);
  }
  if (!best) return std::nullopt;
  return best->second;
}

}  // namespace blindfuse
