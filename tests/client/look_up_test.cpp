#include "client/look_up.h"

#include <gtest/gtest.h>

#include "src/arithmetic/lwe_params.h"

namespace blindfuse {
namespace {

Layout layout_of(const char* lwe, uint32_t value_bytes, uint32_t shard_count) {
  return {.kind = DatabaseKind::kKeyword,
          .key_count = 1'000'000,
          .shard_count = shard_count,
          .row_count = 4096,
          .arity = 3,
          .segment_length = 512,
          .record = {8, 2, value_bytes},
          .lwe = find_lwe_params(lwe),
          .query_bits = 32,
          .response_bits = 10,
          .hint_bits = 18,
          .second = {},
          .batch = {}};
}

// By hand: a query keeps 4 bytes for each of the 1,034 bytes of its record, 128 of its place,
// 16,384 of secrets, and then 1,024 of the key and as many of the value. 256 MiB / 16 / (4 * 1,034
// + 128 + 16,384 + 2,048) = 739.2 requests.
TEST(KeysAtOnce, FillRequestsOfSingleKeysAndMemory) {
  EXPECT_EQ(keys_at_once(layout_of("lwe-1774", 1'024, 300)), 739u * 16);
  EXPECT_EQ(keys_at_once(layout_of("ring-2048", 1'024, 300)), 739u * 16);
}

// 96 * (4 * 1,034 + 128) + 16,384 + 64 * 2,048 = 556,800 bytes a request: 482.1 of them.
TEST(KeysAtOnce, FillRequestsOfSeveralKeys) {
  Layout layout = layout_of("ring-2048", 1'024, 96 * 4);
  layout.batch = BatchCode{.keys_per_request = 64, .bucket_count = 96};
  EXPECT_EQ(keys_at_once(layout), 482u * 64);
}

// 1,024 * 131,072 bytes of values, and 1,536 times 4 times 131,082 of words, are more than all.
TEST(KeysAtOnce, AreThoseOfOneRequestAtLeast) {
  Layout layout = layout_of("ring-2048", 131'072, 1'536);
  layout.batch = BatchCode{.keys_per_request = 1'024, .bucket_count = 1'536};
  EXPECT_EQ(keys_at_once(layout), 1'024u);
}

// Of 4 bytes a row.
TEST(QueriesAtOnce, AreFewerWhereTheyAreLarge) {
  Layout layout = layout_of("lwe-1774", 1'024, 300);
  EXPECT_EQ(queries_at_once(layout), 16u);
  layout.row_count = 1 << 22;
  EXPECT_EQ(queries_at_once(layout), 16u);
  layout.row_count += 64;
  EXPECT_EQ(queries_at_once(layout), 15u);
  layout.row_count = 1 << 26;
  EXPECT_EQ(queries_at_once(layout), 1u);
  layout.row_count = 1 << 28;
  EXPECT_EQ(queries_at_once(layout), 1u);
  layout = layout_of("lwe-1774", 131'072, 1'000);  // 131,082,000 words of 10 bits
  EXPECT_EQ(queries_at_once(layout), 1u);
}

}  // namespace
}  // namespace blindfuse
