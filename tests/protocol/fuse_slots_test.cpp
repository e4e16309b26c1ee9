#include "src/arithmetic/fuse_slots.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/reference_pir.h"
#include "tests/support.h"
#include "tests/vectors.h"

namespace blindfuse {
namespace {

using support::SeededRandom;
using vectors::integer;
using vectors::json;

FuseShape shape_of(const json& c) {
  return {c.at("arity"), c.at("segment_length"), c.at("row_count")};
}

std::vector<uint32_t> rows_of(const FuseShape& shape, uint64_t seed, uint64_t slot_hash) {
  const auto rows = fuse_rows(shape, seed, slot_hash);
  return {rows.begin(), rows.begin() + shape.arity};
}

TEST(FuseSlots, AgreeWithTheVectors) {
  const json file = vectors::read_vectors("fuse_slots.json");
  for (const json& c : file.at("mix64")) {
    EXPECT_EQ(mix64(integer(c.at("in"))), integer(c.at("out")));
  }
  for (const json& c : file.at("rows")) {
    EXPECT_EQ(json(rows_of(shape_of(c), integer(c.at("seed")), integer(c.at("x1")))), c.at("rows"))
        << c;
  }
}

TEST(FuseSlots, AgreeWithTheReference) {
  SeededRandom random(6);
  for (int i = 0; i < 20'000; ++i) {
    const uint32_t arity = random.below(2) == 0 ? 3 : 4;
    const uint32_t length = 64u << random.below(13);
    const auto segments = static_cast<uint32_t>(random.between(arity, (1u << 31) / length));
    const FuseShape shape{arity, length, segments * length};
    const uint64_t seed = random.u64() >> random.below(64);
    const uint64_t hash = random.u64();
    const auto expected = reference_pir::rows_of_key(hash, seed, {shape.row_count, length, arity});
    EXPECT_EQ(rows_of(shape, seed, hash), std::vector<uint32_t>(expected.begin(), expected.end()));
  }
}

TEST(FuseShape, AgreesWithTheVectors) {
  const json file = vectors::read_vectors("fuse_slots.json");
  for (const json& c : file.at("shapes")) {
    EXPECT_EQ(fuse_shape(c.at("key_count"), c.at("arity")), shape_of(c)) << c;
    // The capacity is the fewest rows that still count as room for these keys.
    const uint32_t capacity = c.at("capacity");
    FuseShape exact = shape_of(c);
    exact.row_count = capacity;
    EXPECT_TRUE(fuse_fits(exact, c.at("key_count"))) << c;
    exact.row_count = capacity - 1;
    EXPECT_FALSE(fuse_fits(exact, c.at("key_count"))) << c;
    EXPECT_TRUE(fuse_fits(shape_of(c), 0)) << c;
  }
}

TEST(FuseShape, AgreesWithTheReference) {
  for (const uint32_t arity : {3u, 4u}) {
    for (uint64_t keys = 1; keys < 1'900'000'000; keys += 1 + keys / 50) {
      const auto expected = reference_pir::fuse_shape(keys, arity);
      const FuseShape shape = fuse_shape(keys, arity);
      EXPECT_EQ(shape.segment_length, expected.segment_length) << keys;
      EXPECT_EQ(shape.row_count, expected.row_count) << keys;
    }
  }
}

// 2^31 rows are the most: 1,908,874,354 keys at 1.125 rows a key, rounded to the nearest.
TEST(FuseShape, RefusesMoreRowsThanThereMayBe) {
  EXPECT_EQ(fuse_shape(1'908'874'354, 3).row_count, 1u << 31);
  EXPECT_EQ(fuse_shape(1'908'874'354, 3).segment_length, 1u << 18);
  for (const uint64_t keys : {uint64_t{1'908'874'355}, uint64_t{1} << 32}) {
    const std::string message = support::input_error_of([&] { fuse_shape(keys, 3); });
    EXPECT_NE(message.find(std::to_string(keys)), std::string::npos) << message;
    EXPECT_NE(message.find("more shards"), std::string::npos) << message;
  }
  EXPECT_NE(support::input_error_of([] { fuse_shape(uint64_t{1} << 32, 4); }), "");
}

}  // namespace
}  // namespace blindfuse
