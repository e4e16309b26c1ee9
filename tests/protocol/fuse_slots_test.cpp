#include "src/arithmetic/fuse_slots.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
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

// The paper's factor, written down here again.
double paper_factor(double keys, uint32_t arity) {
  return arity == 3 ? std::max(1.125, 0.875 + 0.25 * std::log(1e6) / std::log(keys))
                    : std::max(1.075, 0.77 + 0.305 * std::log(6e5) / std::log(keys));
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

// Distinct, since each lies in a segment of its own, the next after the one before.
TEST(FuseSlots, OfOneKeyLieInConsecutiveSegments) {
  SeededRandom random(7);
  for (const uint32_t arity : {3u, 4u}) {
    for (const uint32_t segments : {arity, arity + 1, 100u}) {
      const FuseShape shape{arity, 256, segments * 256};
      std::set<uint32_t> first_segments;
      for (int i = 0; i < 20'000; ++i) {
        const auto rows = rows_of(shape, random.u64(), random.u64());
        for (uint32_t j = 0; j < arity; ++j) {
          ASSERT_LT(rows[j], shape.row_count);
          ASSERT_EQ(rows[j] / 256, rows[0] / 256 + j);
        }
        first_segments.insert(rows[0] / 256);
      }
      EXPECT_EQ(first_segments.size(), shape.starting_segments());
    }
  }
}

// Chi squared over the 64 places of a segment: about 63, with a variance of 126.
TEST(FuseSlots, AreUniformInTheirSegments) {
  SeededRandom random(8);
  constexpr int kKeys = 100'000;
  for (const uint32_t arity : {3u, 4u}) {
    const FuseShape shape{arity, 64, 64 * arity};
    std::vector<double> counts(shape.row_count);
    for (int i = 0; i < kKeys; ++i) {
      for (const uint32_t row : rows_of(shape, 17, random.u64())) ++counts[row];
    }
    constexpr double kExpected = kKeys / 64.0;
    for (uint32_t segment = 0; segment < arity; ++segment) {
      double chi_squared = 0;
      for (uint32_t i = 0; i < 64; ++i) {
        const double off = counts[segment * 64 + i] - kExpected;
        chi_squared += off * off / kExpected;
      }
      EXPECT_NEAR(chi_squared, 63, 6 * std::sqrt(126.0)) << "segment " << segment;
    }
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
  }
}

TEST(FuseShape, AgreesWithTheReference) {
  for (const uint32_t arity : {3u, 4u}) {
    for (uint64_t keys = 1; keys < 100'000'000; keys += 1 + keys / 50) {
      const auto expected = reference_pir::fuse_shape(keys, arity);
      const FuseShape shape = fuse_shape(keys, arity);
      EXPECT_EQ(shape.segment_length, expected.segment_length) << keys;
      EXPECT_EQ(shape.row_count, expected.row_count) << keys;
    }
  }
}

TEST(FuseShape, IsWellFormed) {
  for (const uint32_t arity : {3u, 4u}) {
    for (uint64_t keys = 1; keys < 1'000'000'000; keys += 1 + keys / 100) {
      const FuseShape shape = fuse_shape(keys, arity);
      EXPECT_EQ(shape.arity, arity);
      EXPECT_TRUE(std::has_single_bit(shape.segment_length));
      EXPECT_GE(shape.segment_length, kSegmentLengthMin);
      EXPECT_LE(shape.segment_length, kSegmentLengthMax);
      EXPECT_EQ(shape.row_count % shape.segment_length, 0u);
      EXPECT_GE(shape.row_count / shape.segment_length, arity);
      EXPECT_GE(shape.starting_segments(), 1u);
      EXPECT_TRUE(fuse_fits(shape, keys));
    }
  }
}

// A filter is larger than its map by the paper's factor, and by less than a segment more.
TEST(FuseShape, HoldsTheSizeFactor) {
  for (const uint32_t arity : {3u, 4u}) {
    const double least = arity == 3 ? 1.125 : 1.075;
    for (uint64_t keys = 1000; keys < 1'500'000'000; keys += 1 + keys / 200) {
      const double m = static_cast<double>(keys);
      const FuseShape shape = fuse_shape(keys, arity);
      EXPECT_NEAR(fuse_size_factor(keys, arity), paper_factor(m, arity), 1e-12) << keys;
      // Half a row, because the capacity is rounded to the nearest.
      EXPECT_LT(shape.row_count, m * paper_factor(m, arity) + 0.5 + shape.segment_length) << keys;
      EXPECT_GE(shape.row_count + 0.5, m * paper_factor(m, arity)) << keys;
      EXPECT_GE(shape.row_count + 0.5, m * least) << keys;
    }
    EXPECT_DOUBLE_EQ(fuse_size_factor(100'000'000, arity), least);
  }
}

TEST(FuseShape, FitsFewerKeysAndNotMore) {
  SeededRandom random(9);
  for (const uint32_t arity : {3u, 4u}) {
    for (int i = 0; i < 2000; ++i) {
      const uint64_t keys = 1 + (random.u64() >> random.between(34, 63));
      const FuseShape shape = fuse_shape(keys, arity);
      EXPECT_TRUE(fuse_fits(shape, 0));
      EXPECT_TRUE(fuse_fits(shape, keys));
      EXPECT_TRUE(fuse_fits(shape, random.below(keys)));
      EXPECT_FALSE(fuse_fits(shape, shape.row_count)) << "a factor is larger than one";
      // What fits never needs a larger shape.
      const uint64_t more = keys + random.below(shape.row_count);
      const bool fits = fuse_fits(shape, more);
      const double needed = static_cast<double>(more) * fuse_size_factor(more, arity);
      EXPECT_EQ(fits, std::floor(needed + 0.5) <= shape.row_count);
    }
  }
}

// 2^31 rows are the most: 1,908,874,354 keys at 1.125 rows a key, rounded to the nearest.
TEST(FuseShape, RefusesMoreRowsThanThereMayBe) {
  EXPECT_EQ(fuse_shape(1'908'874'354, 3).row_count, 1u << 31);
  EXPECT_EQ(fuse_shape(1'908'874'354, 3).segment_length, kSegmentLengthMax);
  for (const uint64_t keys : {uint64_t{1'908'874'355}, uint64_t{1} << 32}) {
    const std::string message = support::input_error_of([&] { fuse_shape(keys, 3); });
    EXPECT_NE(message.find(std::to_string(keys)), std::string::npos) << message;
    EXPECT_NE(message.find("more shards"), std::string::npos) << message;
  }
  EXPECT_NE(support::input_error_of([] { fuse_shape(uint64_t{1} << 32, 4); }), "");
}

}  // namespace
}  // namespace blindfuse
