#include "host/publish/shard_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

#include "src/arithmetic/noise_budget.h"

namespace blindfuse {
namespace {

Layout one_level(uint32_t shard_count, uint32_t record_bytes, uint32_t response_bits) {
  Layout layout;
  layout.kind = DatabaseKind::kIndex;
  layout.key_count = 1;
  layout.shard_count = shard_count;
  layout.row_count = 2048;
  layout.arity = 1;
  layout.record = {0, 0, record_bytes};
  layout.lwe = find_lwe_params("ring-2048");
  layout.query_bits = 28;
  layout.response_bits = response_bits;
  layout.hint_bits = 18;
  return layout;
}

// Bytes that a second level adds to a query, and those of its response: the fewest of all choices.
uint64_t fewest_bytes(const Layout& layout, bool has_short_key) {
  const uint32_t width = layout.record_bytes(), rb = layout.response_bits;
  uint64_t fewest = std::numeric_limits<uint64_t>::max();
  for (uint32_t g = 1; g <= layout.shard_count; ++g) {
    const uint32_t columns = g * width;
    if (columns > (has_short_key ? 512u : 1024u) && (has_short_key || g > 1)) break;
    uint32_t powers = has_short_key ? 2 : 1024;
    while (has_short_key && powers < columns) powers *= 2;
    const uint32_t groups = (layout.shard_count + g - 1) / g;
    for (uint32_t q = 16; q <= 32; ++q) {
      for (uint32_t m = 16; m <= 32; ++m) {
        for (uint32_t r = rb + 1; r <= 32; ++r) {
          if (second_noise(groups, width, rb, q, m, r, powers - 1).log2_failure > -41) continue;
          const uint64_t bytes = (has_short_key ? 24'576 : 0) + (uint64_t{groups} * q + 7) / 8 +
                                 (columns + 1023) / 1024 * 256 * m +
                                 (uint64_t{columns} * r + 7) / 8;
          fewest = std::min(fewest, bytes);
        }
      }
    }
  }
  return fewest;
}

struct SecondShape {
  uint32_t shard_count, record_bytes, response_bits;
  bool has_short_key;
};

TEST(SecondLevelPlan, HasTheFewestBytes) {
  for (const SecondShape& shape :
       {SecondShape{40, 300, 10, false}, SecondShape{1, 300, 9, false},
        SecondShape{7, 1'500, 10, false}, SecondShape{3'000, 20, 9, false},
        SecondShape{40, 20, 11, true}, SecondShape{1'000, 100, 9, true},
        SecondShape{1, 1, 12, true}, SecondShape{500, 512, 9, true}}) {
    SCOPED_TRACE(std::to_string(shape.shard_count) + " shards of " +
                 std::to_string(shape.record_bytes));
    Layout layout = one_level(shape.shard_count, shape.record_bytes, shape.response_bits);
    const uint64_t before = layout.query_bytes();
    layout.second = plan_second_level(layout, shape.has_short_key);
    ASSERT_TRUE(layout.second);
    EXPECT_EQ(layout.second->key_order > 0, shape.has_short_key);
    EXPECT_EQ(layout.query_bytes() - before + layout.response_bytes(),
              fewest_bytes(layout, shape.has_short_key));
    EXPECT_NO_THROW(check_layout(layout));
  }
}

TEST(SecondLevelPlan, IsNotThereWhereNoneFits) {
  // 11 bits leave no room for 1023 switches of keys: docs/PARAMETERS.md, section 7.
  EXPECT_EQ(plan_second_level(one_level(4, 1024, 11), false), std::nullopt);
  EXPECT_EQ(plan_second_level(one_level(4, 14, 15), true), std::nullopt);
  // A short key has at most 512 columns.
  EXPECT_NE(plan_second_level(one_level(4, 512, 9), true), std::nullopt);
  EXPECT_EQ(plan_second_level(one_level(4, 513, 9), true), std::nullopt);
}

}  // namespace
}  // namespace blindfuse
