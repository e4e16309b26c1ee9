// The products of every batch are checked, so that what is wrong in a client's query alone reaches
// no client. Without the check, clients get a wrong response for each fault here.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cuda/cuda_engine.h"
#include "cuda/pipelines/answer_pipeline.h"
#include "cuda/scan/device_matrix.h"
#include "cuda/scan/scanner.h"
#include "host/engines/canary_response.h"
#include "src/arithmetic/packing_table.h"
#include "src/arithmetic/ring/packing_key_format.h"
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

constexpr uint64_t kMatrixRows = 320, kMatrixColumns = 41;
constexpr WireBits kBits{26, 13};
constexpr size_t kSlots = 130, kBatchMax = 64;
// Where the result of packing does not matter.
constexpr const char* kNoPacking = "skip=cut_table,skip=cut_keys,skip=sum_dp4a,skip=finish_packs";

class EmulatedCudaProducts : public ::testing::Test {
 protected:
  EmulatedCudaProducts()
      : bytes_(random_.octets(kMatrixRows * kMatrixColumns)),
        matrix_(0, kMatrixRows, kMatrixColumns, 0) {
    matrix_.set_columns(0, bytes_);
    matrix_.check();
    canary_.words = query_words();
    // A row of which the canary knows nothing.
    canary_.words[kUnseenRow] = 0;
    canary_.products = product(canary_.words);
    canary_.weights.resize(kMatrixColumns);
    for (uint32_t& weight : canary_.weights) weight = random_.u32() | 1;
  }

  std::vector<uint32_t> query_words() {
    return plain_product::query_words(random_, kMatrixRows, kBits.query);
  }
  std::vector<uint32_t> product(const std::vector<uint32_t>& words) const {
    return plain_product::product(bytes_, words);
  }

  // A scanner of the matrix, and a pipeline of it.
  struct Made {
    std::unique_ptr<Scanner> scanner;
    std::unique_ptr<AnswerPipeline> pipeline;
  };
  Made make(const std::vector<std::string>& kernels, const Canary& canary) {
    Made made{std::make_unique<Scanner>(matrix_, kernels), nullptr};
    made.scanner->check_kernels(canary, kBatchMax);
    made.pipeline = make_device_answer_pipeline(*made.scanner, matrix_, kBits, kSlots, kBatchMax);
    return made;
  }
  Made make(const std::vector<std::string>& kernels = {}) { return make(kernels, canary_); }
  Made make_unchecked(const std::vector<std::string>& kernels = {}) {
    Canary canary = canary_;
    canary.weights.clear();
    return make(kernels, canary);
  }

  // Asks for a batch of random queries: whether the responses are right, or the error.
  std::string answer(const Made& made, size_t count) {
    std::vector<uint8_t> expected;
    for (size_t i = 0; i < count; ++i) {
      const auto words = query_words();
      made.pipeline->put(i, sequence(words, kBits.query));
      const auto response = sequence(product(words), kBits.response);
      expected.insert(expected.end(), response.begin(), response.end());
    }
    try {
      made.pipeline->begin(0, count);
      return std::ranges::equal(made.pipeline->finish(), expected) ? "right" : "wrong";
    } catch (const DeviceLostError& error) {
      return std::string("lost: ") + error.what();
    }
  }

  static void alter(const void* byte) {
    uint8_t value = 0;
    ASSERT_EQ(cudaMemcpy(&value, byte, 1, cudaMemcpyDeviceToHost), cudaSuccess);
    ASSERT_EQ(cudaMemset(const_cast<void*>(byte), value ^ 0x40, 1), cudaSuccess);
  }

  static constexpr uint64_t kUnseenRow = 10;
  const fake_cuda::Anew anew_;
  SeededRandom random_{150};
  std::vector<uint8_t> bytes_;
  DeviceMatrix matrix_;
  Canary canary_;
};

TEST_F(EmulatedCudaProducts, AreRightWhereNothingIsWrong) {
  const Made made = make();
  for (const size_t count : {1, 2, 3, 4, 8, 16, 33, 64}) EXPECT_EQ(answer(made, count), "right");
}

// With the extremes of bytes and words: sums leave 32 bits.
TEST_F(EmulatedCudaProducts, AreRightForExtremes) {
  std::ranges::fill(bytes_, uint8_t{0x80});
  matrix_.set_columns(0, bytes_);
  matrix_.check();
  canary_.products = product(canary_.words);
  const Made made = make();
  const std::vector<uint32_t> words(kMatrixRows, ~uint32_t{0} << (32 - kBits.query));
  made.pipeline->put(0, sequence(words, kBits.query));
  made.pipeline->begin(0, 1);
  EXPECT_TRUE(
      std::ranges::equal(made.pipeline->finish(), sequence(product(words), kBits.response)));
}

// One word of one client's product, by every tile of every kernel. Without the check it goes out.
TEST_F(EmulatedCudaProducts, FindsOneWrongWordOfOneQuery) {
  struct Case {
    const char* kernel;
    const char* tile;
    size_t count;
  };
  for (const auto& [kernel, tile, count] : {Case{"dp4a", "dp4a<1>", 1},
                                            {"dp4a", "dp4a<2>", 2},
                                            {"dp4a", "dp4a<3>", 3},
                                            {"mma", "mma<16>", 4},
                                            {"mma", "mma<32>", 8},
                                            {"mma", "mma<64>", 16},
                                            {"mma", "mma<128>", 32},
                                            {"wgmma", "wgmma<32>", 8},
                                            {"wgmma", "wgmma<64>", 16},
                                            {"wgmma", "wgmma<128>", 32},
                                            {"wgmma", "wgmma<256>", 64},
                                            {"wgmma-tma", "wgmma_tma<32>", 8}}) {
    const Made made = make({kernel});
    const Made unchecked = make_unchecked({kernel});
    const fake_cuda::ScopedFaults faults("miscount=scan_" + std::string(tile));
    EXPECT_EQ(answer(unchecked, count), "wrong") << tile;
    EXPECT_EQ(answer(made, count),
              "lost: the kernel " + std::string(kernel) +
                  " is wrong, or the one that checks it: the products of 1 of " +
                  std::to_string(count) +
                  " queries with the matrix of 320 rows and 41 columns are not those of their "
                  "words, the first query 0");
  }
}

// Of the batch on the device next to a wrong one, of those after it, and of another epoch.
TEST_F(EmulatedCudaProducts, WithholdAllOtherBatchesOfTheDevice) {
  const Made made = make();
  const Made other = make();
  for (size_t i = 0; i < 16; ++i) made.pipeline->put(i, sequence(query_words(), kBits.query));
  other.pipeline->put(0, sequence(query_words(), kBits.query));
  const fake_cuda::ScopedFaults faults("miscount=scan_mma@0");
  made.pipeline->begin(0, 8);
  made.pipeline->begin(8, 8);
  other.pipeline->begin(0, 1);
  EXPECT_THROW(made.pipeline->finish(), DeviceLostError);
  EXPECT_THROW(made.pipeline->finish(), DeviceLostError);
  EXPECT_THROW(other.pipeline->finish(), DeviceLostError);
  EXPECT_THROW(other.pipeline->begin(0, 1), DeviceLostError);
}

// A byte of the matrix that changed after it was loaded, in a row of which the canary knows
// nothing.
TEST_F(EmulatedCudaProducts, FindAByteOfTheMatrixThatChanged) {
  const Made made = make();
  const Made unchecked = make_unchecked();
  EXPECT_EQ(answer(made, 8), "right");
  alter(matrix_.data() + 3 * matrix_.pitch() + kUnseenRow);
  for (const size_t count : {1, 8}) {
    const fake_cuda::ScopedFaults none("");
    EXPECT_EQ(answer(unchecked, count), "wrong");
    EXPECT_EQ(answer(made, count).substr(0, 16), "lost: the kernel");
  }
}

// A limb that is not its word's. What is multiplied with it agrees with it, and not with the word.
TEST_F(EmulatedCudaProducts, FindAWrongLimb) {
  const Made made = make();
  const Made unchecked = make_unchecked();
  for (const size_t count : {1, 8}) {
    const fake_cuda::ScopedFaults faults("miscount=cut_bit_sequences");
    EXPECT_EQ(answer(unchecked, count), "wrong") << count;
    EXPECT_EQ(answer(made, count).substr(0, 16), "lost: the kernel") << count;
  }
  // None at all: in a lane that had no batch before, and in one whose limbs are those of another.
  for (const int batches : {0, 3}) {
    const Made again = make();
    const fake_cuda::ScopedFaults faults("skip=cut_bit_sequences@" + std::to_string(batches));
    for (int i = 0; i < batches; ++i) EXPECT_EQ(answer(again, 8), "right");
    EXPECT_EQ(answer(again, 8).substr(0, 16), "lost: the kernel");
  }
}

// Whose limbs are zeros in the lane, where the query before was one of zeros.
TEST_F(EmulatedCudaProducts, FindAQueryThatWasNotCutAfterOneOfZeros) {
  const Made made = make();
  const Made unchecked = make_unchecked();
  const std::vector<uint8_t> zeros(bit_sequence_bytes(kMatrixRows, kBits.query));
  for (const Made* each : {&made, &unchecked}) {
    for (size_t i = 0; i < 8; ++i) each->pipeline->put(i, zeros);
    for (int lane = 0; lane < 2; ++lane) {
      each->pipeline->begin(0, 8);
      each->pipeline->finish();
    }
  }
  const fake_cuda::ScopedFaults faults("skip=cut_bit_sequences");
  EXPECT_EQ(answer(unchecked, 8), "wrong");
  EXPECT_EQ(answer(made, 8).substr(0, 16), "lost: the kernel");
}

// The check itself is wrong: nothing would be known of further batches. What the batches before
// have left says that all is right.
TEST_F(EmulatedCudaProducts, LoseTheDeviceWhenTheCheckIsWrong) {
  for (const std::string fault : {"miscount=weigh_products", "skip=weigh_products"}) {
    const Made made = make();
    for (int i = 0; i < 2; ++i) EXPECT_EQ(answer(made, 8), "right");
    const fake_cuda::ScopedFaults faults(fault);
    EXPECT_EQ(answer(made, 8).substr(0, 16), "lost: the kernel") << fault;
  }
  for (const uint64_t word : {uint64_t{17}, matrix_.pitch() + 5}) {
    const Made made = make();
    EXPECT_EQ(answer(made, 8), "right");
    alter(made.scanner->check_vector()->query_sums(nullptr).weights + word);
    EXPECT_EQ(answer(made, 8).substr(0, 16), "lost: the kernel") << word;
    fake_cuda::set_faults("");
  }
}

TEST_F(EmulatedCudaProducts, AreNotCheckedWithAVectorThatIsWrong) {
  for (const std::string fault :
       {"miscount=weigh_columns", "spoil=weigh_columns", "skip=weigh_columns"}) {
    Scanner scanner(matrix_, {});
    const fake_cuda::ScopedFaults faults(fault);
    EXPECT_THROW(scanner.check_kernels(canary_, kBatchMax), DeviceLostError) << fault;
    EXPECT_EQ(scanner.check_vector(), nullptr);
  }
}

// A byte that changes before the vector is made would become what is right: the canary, whose word
// there is zero, agrees with it.
TEST_F(EmulatedCudaProducts, AreNotCheckedWithTheVectorOfAMatrixThatChanged) {
  alter(matrix_.data() + 40 * matrix_.pitch() + kUnseenRow);
  Scanner scanner(matrix_, {});
  try {
    scanner.check_kernels(canary_, kBatchMax);
    ADD_FAILURE();
  } catch (const DeviceLostError& error) {
    EXPECT_NE(std::string(error.what()).find("is not what was sent to the device's memory"),
              std::string::npos)
        << error.what();
  }
  fake_cuda::set_faults("");
}

// Queries with words for each of several buckets, which are packed: that every bucket's products
// are checked, and that the canary goes through all of them. What responses are right, the suite of
// all engines says (tests/engine/packed_answer_pipeline_test.cpp).
constexpr uint64_t kBucketRows = 320, kBuckets = 3, kBucketColumns = 14;
constexpr uint64_t kAllColumns = kBuckets * kBucketColumns;
constexpr WireBits kBucketBits{26, 13};

class EmulatedCudaBuckets : public ::testing::Test {
 protected:
  EmulatedCudaBuckets() : bytes_(random_.octets(kBucketRows * kAllColumns)) {
    tables_.push_back(plain_product::random_table(random_));
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
    const auto engine = this->engine("dp4a");
    // The result of packing does not matter here.
    const fake_cuda::ScopedFaults faults(kNoPacking + std::string(",miscount=scan_dp4a@") +
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
