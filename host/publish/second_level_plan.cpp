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

// The fewest bits of the response that leave the failures few enough. Fewer bits of the query or
// the mask are only worth them if there are any.
bool choose_response_bits(Layout& layout) {
  uint32_t& bits = layout.second->response_bits;
  for (bits = layout.response_bits + 1; bits <= kBitsMax; ++bits) {
    if (log2_failure(layout) <= kLevelFailureLog2Max) return true;
  }
  return false;
}

void keep_better(const Layout& layout, std::optional<Layout>& best) {
  if (!best || bytes_of(layout) < bytes_of(*best)) best = layout;
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
  for (uint32_t g = 1; g <= groups; ++g) {
    tried.second = SecondLevel{.group_shards = g};
    if (has_short_key) {
      tried.second->key_order = std::max(2u, std::bit_ceil(tried.second_column_count()));
    }
    for (uint32_t q = kBitsMin; q <= kBitsMax; ++q) {
      tried.second->query_bits = q;
      for (uint32_t m = kBitsMin; m <= kBitsMax; ++m) {
        tried.second->mask_bits = m;
        if (choose_response_bits(tried)) keep_better(tried, best);
      }
    }
  }
  if (!best) return std::nullopt;
  return best->second;
}

}  // namespace blindfuse
