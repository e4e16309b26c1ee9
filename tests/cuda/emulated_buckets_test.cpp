// Queries with words for each of several buckets, on an emulated GPU: that every bucket's products
// are checked, and that the canary goes through all of them. What responses are right, the suite of
// all engines says (tests/engine/packed_answer_pipeline_test.cpp).
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cuda/cuda_engine.h"
#include "cuda/scan/device_matrix.h"
#include "cuda/scan/scanner.h"
#include "host/engines/canary_response.h"
#include "src/arithmetic/packing_table.h"
#include "src/arithmetic/ring/packing_keys.h"
#include "src/base/errors.h"
#include "tests/client/seeded_random.h"
#include "tests/cuda/fake_faults.h"
#include "tests/cuda/fake_runtime.h"
#include "tests/cuda/small_problem.h"
#include "tests/engine/packed_reference.h"
#include "tests/support.h"

namespace blindfuse {
namespace {

using plain_product::sequence;
using support::SeededRandom;

constexpr uint64_t kBucketRows = 320, kBuckets = 3, kBucketColumns = 14;
constexpr uint64_t kAllColumns = kBuckets * kBucketColumns;
constexpr WireBits kBucketBits{26, 13};

class EmulatedCudaBuckets : public ::testing::Test {
 protected:
  EmulatedCudaBuckets() : bytes_(random_.octets(kBucketRows * kAllColumns)) {
    const std::shared_ptr<uint32_t[]> table(new uint32_t[kTableWords]);
    for (size_t i = 0; i < kTableWords; ++i) {
      table[i] = static_cast<uint32_t>(random_.below(ring::kPackingModulus));
    }
    tables_.emplace_back(table, table.get());
    canary_.words = plain_product::query_words(random_, kBucketRows, kBucketBits.query);
    canary_.products = plain_product::product(bytes_, canary_.words);
    canary_.weights.resize(kAllColumns);
    for (uint32_t& weight : canary_.weights) weight = random_.u32() | 1;
    Layout layout;
    layout.lwe = find_lwe_params("ring-2048");
    layout.query_bits = kBucketBits.query;
    layout.response_bits = kBucketBits.response;
    layout.batch = BatchCode{.keys_per_request = 2, .bucket_count = kBuckets};
    complete_canary(canary_, layout, tables_, 1, seeded_random(161));
  }

  std::unique_ptr<Engine> engine(const std::string& kernel) {
    auto engine = make_cuda_engine({kernel}, 0, kBucketRows, kAllColumns,
                                   {.batch_max = 2, .pack_count = 1, .bucket_count = kBuckets});
    engine->set_columns(0, bytes_);
    engine->seal();
    engine->check_kernels(canary_, 2);
    return engine;
  }
  std::unique_ptr<AnswerPipeline> pipeline(Engine& engine) {
    return engine.make_packed_answer_pipeline(kBucketBits, tables_, 2, 2, nullptr, kBuckets);
  }

  // A query, and the products that it has by the definition, bucket by bucket.
  struct Query {
    std::vector<uint8_t> bytes;
    std::vector<uint32_t> products;
  };
  Query random_query() {
    Query query;
    std::vector<uint32_t> all;
    for (uint64_t bucket = 0; bucket < kBuckets; ++bucket) {
      const auto words = plain_product::query_words(random_, kBucketRows, kBucketBits.query);
      const auto products =
          plain_product::product(std::span(bytes_).subspan(bucket * kBucketColumns * kBucketRows,
                                                           kBucketColumns * kBucketRows),
                                 words);
      all.insert(all.end(), words.begin(), words.end());
      query.products.insert(query.products.end(), products.begin(), products.end());
    }
    query.bytes = sequence(all, kBucketBits.query);
    query.bytes.resize(query.bytes.size() + ring::kKeyBytes);  // a key of zeros
    return query;
  }

  const fake_cuda::Anew anew_;
  SeededRandom random_{160};
  const std::vector<uint8_t> bytes_;
  std::vector<SharedPackingTable> tables_;
  Canary canary_;
};

TEST_F(EmulatedCudaBuckets, AreAnswered) {
  const auto engine = this->engine("mma");
  const auto pipeline = this->pipeline(*engine);
  const Query query = random_query();
  pipeline->put(0, query.bytes);
  pipeline->begin(0, 1);
  const auto response = pipeline->finish();
  const std::vector<uint8_t> key(ring::kKeyBytes);
  EXPECT_EQ(std::vector<uint8_t>(response.begin(), response.end()),
            support::packed_reference(query.products, tables_, key, kBucketBits.response));
  for (const Canary::Exchange& exchange : canary_.exchanges) {
    pipeline->put(0, exchange.query);
    pipeline->begin(0, 1);
    EXPECT_TRUE(std::ranges::equal(pipeline->finish(), exchange.response));
  }
}

// Whichever bucket's product is wrong.
TEST_F(EmulatedCudaBuckets, WithholdWrongProductsOfAnyBucket) {
  for (const int launch : {0, 1, 2}) {
    auto engine = make_cuda_engine({"dp4a"}, 0, kBucketRows, kAllColumns,
                                   {.batch_max = 2, .pack_count = 1, .bucket_count = kBuckets});
    engine->set_columns(0, bytes_);
    engine->seal();
    engine->check_kernels(canary_, 2);
    // The result of packing does not matter here.
    const fake_cuda::ScopedFaults faults(
        "skip=cut_table,skip=cut_keys,skip=sum_dp4a,skip=finish_packs,miscount=scan_dp4a@" +
        std::to_string(kBuckets + static_cast<uint64_t>(launch)));
    const auto pipeline = this->pipeline(*engine);
    pipeline->put(0, random_query().bytes);
    pipeline->begin(0, 1);
    EXPECT_NO_THROW(pipeline->finish()) << launch;
    pipeline->begin(0, 1);
    EXPECT_THROW(pipeline->finish(), DeviceLostError) << launch;
  }
}

// One wrong weighted column makes the vector wrong in its bucket alone.
TEST_F(EmulatedCudaBuckets, AreNotCheckedWithAWrongVectorOfAnyBucket) {
  DeviceMatrix matrix(0, kBucketRows, kAllColumns, 0);
  matrix.set_columns(0, bytes_);
  matrix.check();
  for (const int launch : {0, 1, 2}) {
    Scanner scanner(matrix, {"dp4a"});
    const fake_cuda::ScopedFaults faults("miscount=weigh_columns@" + std::to_string(launch));
    EXPECT_THROW(scanner.check_kernels(canary_, 2), DeviceLostError) << launch;
    EXPECT_EQ(scanner.check_vector(), nullptr);
  }
}

}  // namespace
}  // namespace blindfuse
