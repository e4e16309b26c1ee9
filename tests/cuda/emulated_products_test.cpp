// The products of every batch are checked, so that what is wrong in a client's query alone reaches
// no client. Each fault here is one that the canary, which is in none of these batches, does not
// see: without the check, clients get a wrong response.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cuda/cuda_engine.h"
#include "cuda/pipelines/answer_pipeline.h"
#include "cuda/scan/device_matrix.h"
#include "cuda/scan/scanner.h"
#include "src/arithmetic/packing_table.h"
#include "src/arithmetic/ring/packing_keys.h"
#include "src/base/errors.h"
#include "tests/cuda/fake_faults.h"
#include "tests/cuda/plain_product.h"
#include "tests/support.h"

namespace blindfuse {
namespace {

using plain_product::sequence;
using support::SeededRandom;

constexpr uint64_t kMatrixRows = 320, kMatrixColumns = 41;
constexpr WireBits kBits{26, 13};
constexpr size_t kSlots = 130, kBatchMax = 64;

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
    canary_.query = sequence(canary_.words, kBits.query);
    canary_.response = sequence(canary_.products, kBits.response);
    canary_.weights.resize(kMatrixColumns);
    for (uint32_t& weight : canary_.weights) weight = random_.u32() | 1;
  }

  std::vector<uint32_t> query_words() {
    return plain_product::query_words(random_, kMatrixRows, kBits.query);
  }
  std::vector<uint32_t> product(const std::vector<uint32_t>& words) const {
    return plain_product::product(bytes_, words);
  }

  // A scanner of the matrix, and a pipeline of it whose kernels for one and for many queries have
  // computed the canary already.
  struct Made {
    std::unique_ptr<Scanner> scanner;
    std::unique_ptr<AnswerPipeline> pipeline;
  };
  Made make(std::string_view kernel, const Canary& canary,
            std::shared_ptr<KernelRecord> record = std::make_shared<KernelRecord>()) {
    Made made{std::make_unique<Scanner>(matrix_, kernel, std::move(record)), nullptr};
    made.scanner->check_kernels(canary, kBatchMax);
    made.pipeline = make_device_answer_pipeline(*made.scanner, matrix_, kBits, kSlots, kBatchMax);
    return made;
  }
  Made make(std::string_view kernel = "") { return make(kernel, canary_, record_); }
  Made make_unchecked(std::string_view kernel = "") {
    Canary canary = canary_;
    canary.weights.clear();
    return make(kernel, canary);
  }

  // Asks for a batch of random queries, without the canary: whether the responses are right, or the
  // error.
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
    } catch (const ResourceError& error) {
      return std::string("failed: ") + error.what();
    }
  }

  struct Checks {
    uint64_t passed = 0, failed = 0;
    bool operator==(const Checks&) const = default;
  };
  static Checks checks(const KernelRecord& record, std::string_view kernel, CheckStage stage) {
    for (const auto& count : record.counts()) {
      if (count.kernel == kernel && count.stage == stage) return {count.passed, count.failed};
    }
    return {};
  }
  Checks checks(std::string_view kernel, CheckStage stage = CheckStage::kProduct) const {
    return checks(*record_, kernel, stage);
  }
  static void alter(const void* byte) {
    uint8_t value = 0;
    ASSERT_EQ(cudaMemcpy(&value, byte, 1, cudaMemcpyDeviceToHost), cudaSuccess);
    ASSERT_EQ(cudaMemset(const_cast<void*>(byte), value ^ 0x40, 1), cudaSuccess);
  }

  static constexpr uint64_t kUnseenRow = 10;
  SeededRandom random_{150};
  std::vector<uint8_t> bytes_;
  DeviceMatrix matrix_;
  Canary canary_;
  const std::shared_ptr<KernelRecord> record_ = std::make_shared<KernelRecord>();
};

TEST_F(EmulatedCudaProducts, AreRightWhereNothingIsWrong) {
  const Made made = make();
  EXPECT_EQ(checks("weighing", CheckStage::kMatrix), (Checks{1, 0}));
  for (const size_t count : {1, 2, 3, 4, 8, 16, 33, 64}) EXPECT_EQ(answer(made, count), "right");
  EXPECT_EQ(checks("dp4a"), (Checks{3, 0}));
  EXPECT_EQ(checks("mma"), (Checks{5, 0}));
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
    const auto record = std::make_shared<KernelRecord>();
    const Made made = make(kernel, canary_, record);
    const Made unchecked = make_unchecked(kernel);
    const fake_cuda::ScopedFaults faults("miscount=scan_" + std::string(tile));
    EXPECT_EQ(answer(unchecked, count), "wrong") << tile;
    const std::string withheld = answer(made, count);
    // The kernel was named, so that nothing takes its place.
    EXPECT_EQ(withheld.substr(0, 16), "lost: the kernel") << tile << ": " << withheld;
    const std::string what = "the products of 1 of " + std::to_string(count) +
                             (count == 1 ? " query" : " queries") +
                             " of a batch, first query 0, are not those of its words";
    EXPECT_NE(withheld.find(what), std::string::npos) << withheld;
    EXPECT_EQ(record->why_unfit(kernel), what);
  }
}

TEST_F(EmulatedCudaProducts, WithholdsTheBatchAndTakesAnotherKernel) {
  const Made made = make();
  const fake_cuda::ScopedFaults faults("miscount=scan_mma@1");
  EXPECT_EQ(answer(made, 8), "right");
  const std::string withheld = answer(made, 8);
  EXPECT_EQ(withheld.substr(0, 36), "failed: the kernel cuda:mma is wrong") << withheld;
  EXPECT_NE(withheld.find("responses of this batch are withheld"), std::string::npos) << withheld;
  EXPECT_FALSE(record_->is_fit("mma"));
  EXPECT_EQ(checks("mma"), (Checks{1, 1}));
  EXPECT_EQ(answer(made, 8), "right") << "by wgmma-tma";
  EXPECT_EQ(checks("wgmma-tma"), (Checks{1, 0}));
}

// What the canary was right with before may be wrong now.
TEST_F(EmulatedCudaProducts, MakeTheCanaryDueWhereTheyAreWrong) {
  const Made made = make();
  made.pipeline->set_canary(canary_, std::chrono::hours(1));
  EXPECT_EQ(answer(made, 1), "right");
  EXPECT_EQ(answer(made, 1), "right");
  EXPECT_EQ(checks("dp4a", CheckStage::kCanary), (Checks{1, 0}));
  {
    // The canary first.
    const fake_cuda::ScopedFaults faults("miscount=scan_mma@1");
    EXPECT_EQ(answer(made, 8).substr(0, 7), "failed:");
  }
  EXPECT_EQ(answer(made, 1), "right");
  EXPECT_EQ(checks("dp4a", CheckStage::kCanary), (Checks{2, 0}));
}

// The canary's own batch, of others' queries or of none, is checked like any other. The first of
// six queries is wrong: where that is the canary, it tells, and where it is a client's, the check
// of products.
TEST_F(EmulatedCudaProducts, AreCheckedNextToTheCanaryToo) {
  int told_by_canary = 0, told_by_check = 0;
  for (canary_.seed = 0; canary_.seed < 20; ++canary_.seed) {
    const auto record = std::make_shared<KernelRecord>();
    const Made made = make("", canary_, record);
    made.pipeline->set_canary(canary_, std::chrono::hours(1));
    {
      const fake_cuda::ScopedFaults faults("miscount=scan_mma");
      EXPECT_EQ(answer(made, 5).substr(0, 36), "failed: the kernel cuda:mma is wrong");
    }
    const Checks of_canary = checks(*record, "mma", CheckStage::kCanary);
    const Checks of_products = checks(*record, "mma", CheckStage::kProduct);
    if (of_canary == Checks{0, 1}) {
      EXPECT_EQ(of_products, (Checks{0, 0}));
      ++told_by_canary;
    } else {
      EXPECT_EQ(of_canary, (Checks{1, 0}));
      EXPECT_EQ(of_products, (Checks{0, 1}));
      ++told_by_check;
    }
    // Many by wgmma-tma now, one by dp4a.
    made.pipeline->check();
    EXPECT_EQ(checks(*record, "wgmma-tma", CheckStage::kProduct), (Checks{1, 0}));
    EXPECT_EQ(checks(*record, "dp4a", CheckStage::kProduct), (Checks{1, 0}));
  }
  EXPECT_GT(told_by_canary, 0);
  EXPECT_GT(told_by_check, 0);
}

// A byte of the matrix that changed after it was loaded.
TEST_F(EmulatedCudaProducts, FindAByteOfTheMatrixThatChanged) {
  const Made made = make();
  const Made unchecked = make_unchecked();
  EXPECT_EQ(answer(made, 8), "right");
  alter(matrix_.data() + 3 * matrix_.pitch() + kUnseenRow);
  EXPECT_EQ(answer(unchecked, 8), "wrong");
  for (const size_t count : {1, 8}) {
    const std::string lost = answer(made, count);
    EXPECT_EQ(lost.substr(0, 52), "lost: the matrix has changed in the device's memory:") << lost;
    EXPECT_NE(lost.find("of a batch"), std::string::npos) << lost;
  }
  for (const std::string kernel : {"dp4a", "mma", "wgmma-tma"})
    EXPECT_TRUE(record_->is_fit(kernel));
}

// Not even by the canary, which knows nothing of this row.
TEST_F(EmulatedCudaProducts, FindWhatTheCanaryDoesNotKnow) {
  const Made made = make();
  made.pipeline->set_canary(canary_, std::chrono::milliseconds(0));
  const Made unchecked = make_unchecked();
  unchecked.pipeline->set_canary(canary_, std::chrono::milliseconds(0));
  alter(matrix_.data() + 40 * matrix_.pitch() + kUnseenRow);
  EXPECT_EQ(answer(unchecked, 5), "wrong");
  EXPECT_EQ(answer(made, 5).substr(0, 28), "lost: the matrix has changed");
}

// A limb that is not its word's. What is multiplied with it agrees with it, and not with the word.
TEST_F(EmulatedCudaProducts, FindAWrongLimb) {
  const Made made = make();
  const Made unchecked = make_unchecked();
  for (const size_t count : {1, 8}) {
    const fake_cuda::ScopedFaults faults("miscount=cut_bit_sequences");
    EXPECT_EQ(answer(unchecked, count), "wrong") << count;
    EXPECT_EQ(answer(made, count).substr(0, 24), "failed: the kernel cuda:") << count;
  }
  // None at all: in a lane that had no batch before, and in one whose limbs are those of another.
  const fake_cuda::ScopedFaults faults("skip=cut_bit_sequences@0,skip=cut_bit_sequences@3");
  const Made again = make("", canary_, std::make_shared<KernelRecord>());
  EXPECT_EQ(answer(again, 8).substr(0, 24), "failed: the kernel cuda:");
  EXPECT_EQ(answer(again, 8), "right");
  EXPECT_EQ(answer(again, 8), "right");
  EXPECT_EQ(answer(again, 8).substr(0, 24), "failed: the kernel cuda:");
}

// Nor after the check before the first batch, for which there are no other queries yet.
TEST_F(EmulatedCudaProducts, FindAQueryThatWasNotCutInTheFirstBatch) {
  const Made made = make();
  made.pipeline->set_canary(canary_, std::chrono::hours(1));
  made.pipeline->check();
  const fake_cuda::ScopedFaults faults("spoil=cut_bit_sequences");
  EXPECT_EQ(answer(made, kBatchMax).substr(0, 7), "failed:");
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
  EXPECT_EQ(answer(made, 8).substr(0, 24), "failed: the kernel cuda:");
}

// Of so few rows that the limbs of wgmma-tma are, of some queries, zeros in the order of mma: what
// that has left is not to pass for a query of zeros.
TEST_F(EmulatedCudaProducts, FindAQueryThatWasNotCutAfterThoseOfAnotherKernel) {
  constexpr uint64_t kFewRows = 5;
  DeviceMatrix matrix(0, kFewRows, kMatrixColumns, 0);
  matrix.set_columns(0, std::span(bytes_).first(kFewRows * kMatrixColumns));
  matrix.check();
  Canary canary;
  canary.words.resize(kFewRows);
  canary.products.resize(kMatrixColumns);
  canary.weights = canary_.weights;
  Scanner scanner(matrix, "", record_);
  scanner.check_kernels(canary, kBatchMax);
  const auto pipeline = make_device_answer_pipeline(scanner, matrix, kBits, kSlots, kBatchMax);
  for (size_t i = 0; i < 8; ++i) {
    std::vector<uint32_t> words = query_words();
    words.resize(kFewRows);
    pipeline->put(i, sequence(words, kBits.query));
  }
  for (int lane = 0; lane < 2; ++lane) {
    pipeline->begin(0, 8);
    pipeline->finish();
  }
  record_->note_failed("mma", CheckStage::kProduct, "it is");
  // The last block, which has the last query.
  const fake_cuda::ScopedFaults faults("spoil=cut_bit_sequences");
  pipeline->begin(0, 8);
  EXPECT_THROW(pipeline->finish(), ResourceError);
  EXPECT_FALSE(record_->is_fit("wgmma-tma"));
}

// The check itself is wrong: nothing takes its place, and the scan is not blamed.
TEST_F(EmulatedCudaProducts, LoseTheDeviceWhenTheCheckIsWrong) {
  for (const std::string fault : {"miscount=weigh_products", "skip=weigh_products"}) {
    const auto record = std::make_shared<KernelRecord>();
    const Made made = make("", canary_, record);
    // What the batches before have left says that all is right.
    for (int i = 0; i < 2; ++i) EXPECT_EQ(answer(made, 8), "right");
    {
      const fake_cuda::ScopedFaults faults(fault);
      const std::string lost = answer(made, 8);
      EXPECT_EQ(lost.substr(0, 33), "lost: the GPU's weighing is wrong") << fault << ": " << lost;
      EXPECT_NE(lost.find("of a batch, first query 0, which are right"), std::string::npos) << lost;
    }
    EXPECT_TRUE(record->is_fit("mma"));
    EXPECT_FALSE(record->is_fit("weighing"));
    // Nor are other batches answered, of which nothing would be known.
    EXPECT_NE(answer(made, 8).find("lost: the GPU's weighing has been found wrong: it found"),
              std::string::npos);
  }
}

TEST_F(EmulatedCudaProducts, LoseTheDeviceWhenTheCheckVectorHasChanged) {
  for (const uint64_t word : {uint64_t{17}, matrix_.pitch() + 5}) {
    const auto record = std::make_shared<KernelRecord>();
    const Made made = make("", canary_, record);
    EXPECT_EQ(answer(made, 8), "right");
    alter(made.scanner->check_vector()->query_sums(nullptr).weights + word);
    const std::string lost = answer(made, 8);
    EXPECT_NE(lost.find("lost: the GPU's weighing is wrong: what products are checked with has "
                        "changed"),
              std::string::npos)
        << lost;
    EXPECT_TRUE(record->is_fit("mma"));
  }
}

TEST_F(EmulatedCudaProducts, AreNotCheckedWithAVectorThatIsWrong) {
  for (const std::string fault :
       {"miscount=weigh_columns", "spoil=weigh_columns", "skip=weigh_columns"}) {
    Scanner scanner(matrix_, "", std::make_shared<KernelRecord>());
    {
      const fake_cuda::ScopedFaults faults(fault);
      EXPECT_THROW(scanner.check_kernels(canary_, kBatchMax), DeviceLostError) << fault;
    }
    EXPECT_EQ(scanner.check_vector(), nullptr);
    EXPECT_FALSE(scanner.record().is_fit("weighing"));
    EXPECT_TRUE(scanner.record().is_fit("mma"));
    scanner.check_kernels(canary_, kBatchMax);
    EXPECT_NE(scanner.check_vector(), nullptr);
  }
}

// A byte that changes before the vector is made would become what is right: the canary, whose word
// there is zero, agrees with it.
TEST_F(EmulatedCudaProducts, AreNotCheckedWithTheVectorOfAMatrixThatChanged) {
  alter(matrix_.data() + 40 * matrix_.pitch() + kUnseenRow);
  Scanner scanner(matrix_, "", record_);
  try {
    scanner.check_kernels(canary_, kBatchMax);
    ADD_FAILURE();
  } catch (const DeviceLostError& error) {
    EXPECT_NE(std::string(error.what()).find("found when the vector was made"), std::string::npos)
        << error.what();
  }
  EXPECT_EQ(scanner.check_vector(), nullptr);
  EXPECT_TRUE(record_->is_fit("weighing"));
}

// Products that are packed are checked before they are.
TEST_F(EmulatedCudaProducts, AreCheckedWhereResponsesArePacked) {
  const auto engine = make_cuda_engine("dp4a", 0, record_, kMatrixRows, kMatrixColumns);
  engine->set_columns(0, bytes_);
  engine->seal();
  engine->check_kernels(canary_, 1);
  // The result of packing does not matter here.
  constexpr const char* kFast =
      "skip=cut_table,skip=cut_keys,skip=sum_dp4a,skip=finish_packs,miscount=scan_dp4a@1";
  const fake_cuda::ScopedFaults faults(kFast);
  const std::shared_ptr<uint32_t[]> table(new uint32_t[kTableWords]());
  const std::vector<SharedPackingTable> tables(1, table);
  const auto pipeline = engine->make_packed_answer_pipeline(kBits, tables, 2, 1);
  std::vector<uint8_t> query = sequence(query_words(), kBits.query);
  query.resize(query.size() + ring::kKeyBytes);
  pipeline->put(0, query);
  pipeline->begin(0, 1);
  pipeline->finish();
  EXPECT_EQ(checks("dp4a"), (Checks{1, 0}));
  pipeline->begin(0, 1);
  EXPECT_THROW(pipeline->finish(), DeviceLostError);
  EXPECT_EQ(checks("dp4a"), (Checks{1, 1}));
}

}  // namespace
}  // namespace blindfuse
