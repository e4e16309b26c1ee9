// A GPU that computes wrong is found out by products and responses that the host knows: before it
// answers, with batches of clients' queries, and in between.
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
#include "src/arithmetic/bit_sequence.h"
#include "src/arithmetic/packing_table.h"
#include "src/arithmetic/ring/prime_field.h"
#include "src/base/errors.h"
#include "tests/cuda/fake_faults.h"
#include "tests/support.h"

namespace blindfuse {
namespace {

using support::SeededRandom;

constexpr uint64_t kRows = 320, kColumns = 41;
constexpr uint32_t kQueryBits = 26, kResponseBits = 13;
constexpr size_t kSlots = 80, kBatchMax = 40;
constexpr auto kNever = std::chrono::hours(1);

class EmulatedCudaCanary : public ::testing::Test {
 protected:
  EmulatedCudaCanary() : matrix_(random_.octets(kRows * kColumns)) {
    layout_.lwe = find_lwe_params("lwe-1288");
    layout_.row_count = kRows;
    layout_.query_bits = kQueryBits;
    layout_.response_bits = kResponseBits;
    canary_.words = query_words();
    canary_.products = product(canary_.words);
    complete_canary(canary_, layout_, {}, 1);
  }

  std::vector<uint32_t> query_words() {
    std::vector<uint32_t> words(kRows);
    for (uint32_t& word : words) word = random_.u32() >> (32 - kQueryBits) << (32 - kQueryBits);
    return words;
  }
  // By the definition.
  std::vector<uint32_t> product(const std::vector<uint32_t>& words) const {
    std::vector<uint32_t> sums(kColumns);
    for (uint64_t c = 0; c < kColumns; ++c) {
      for (uint64_t r = 0; r < kRows; ++r) {
        sums[c] += words[r] *
                   static_cast<uint32_t>(int32_t{static_cast<int8_t>(matrix_[c * kRows + r])});
      }
    }
    return sums;
  }
  static std::vector<uint8_t> sequence(const std::vector<uint32_t>& words, uint32_t bits) {
    std::vector<uint8_t> bytes(bit_sequence_bytes(words.size(), bits));
    write_bit_sequence(words, bits, bytes);
    return bytes;
  }

  std::unique_ptr<Engine> engine(std::string_view kernel = "") {
    auto engine = make_cuda_engine(kernel, 0, record_, kRows, kColumns);
    engine->set_columns(0, matrix_);
    engine->seal();
    return engine;
  }
  std::unique_ptr<AnswerPipeline> pipeline(Engine& engine, std::chrono::milliseconds interval) {
    auto made = engine.make_answer_pipeline({kQueryBits, kResponseBits}, kSlots, kBatchMax);
    made->set_canary(canary_, interval);
    return made;
  }

  // Asks for a batch of random queries: whether the responses are right, or "" and the error.
  std::string answer(AnswerPipeline& pipeline, size_t count) {
    std::vector<uint8_t> expected;
    for (size_t i = 0; i < count; ++i) {
      const auto words = query_words();
      pipeline.put(i, sequence(words, kQueryBits));
      const auto response = sequence(product(words), kResponseBits);
      expected.insert(expected.end(), response.begin(), response.end());
    }
    try {
      pipeline.begin(0, count);
      return std::ranges::equal(pipeline.finish(), expected) ? "right" : "wrong";
    } catch (const DeviceLostError& error) {
      return std::string("lost: ") + error.what();
    } catch (const ResourceError& error) {
      return std::string("failed: ") + error.what();
    }
  }

  uint64_t checks(std::string_view kernel, CheckStage stage) const {
    for (const auto& count : record_->counts()) {
      if (count.kernel == kernel && count.stage == stage) return count.passed;
    }
    return 0;
  }

  SeededRandom random_{140};
  std::vector<uint8_t> matrix_;
  Layout layout_;
  Canary canary_;
  const std::shared_ptr<KernelRecord> record_ = std::make_shared<KernelRecord>();
};

TEST_F(EmulatedCudaCanary, HasTheResponseOfAQuery) {
  EXPECT_EQ(canary_.query, sequence(canary_.words, kQueryBits));
  EXPECT_EQ(canary_.response, sequence(canary_.products, kResponseBits));
}

TEST_F(EmulatedCudaCanary, FindsNothingWhereAllIsRight) {
  const auto engine = this->engine();
  engine->check_kernels(canary_, kBatchMax);
  // Batches of 1, 2 and 3; of 4, 8, 16, 32 and 40; of 8, 16, 32 and 40.
  EXPECT_EQ(checks("dp4a", CheckStage::kMatrix), 3u);
  EXPECT_EQ(checks("mma", CheckStage::kMatrix), 5u);
  EXPECT_EQ(checks("wgmma", CheckStage::kMatrix), 4u);
  for (const auto& count : record_->counts()) EXPECT_EQ(count.failed, 0u);
}

// Each tile of each kernel, and nothing but that kernel.
TEST_F(EmulatedCudaCanary, FindsATileThatIsWrongOnTheMatrix) {
  for (const std::string tile :
       {"dp4a<1>", "dp4a<2>", "dp4a<3>", "mma<16>", "mma<32>", "mma<64>", "mma<128>", "wgmma<32>",
        "wgmma<64>", "wgmma<128>", "wgmma<256>"}) {
    const auto record = std::make_shared<KernelRecord>();
    auto engine = make_cuda_engine("", 0, record, kRows, kColumns);
    engine->set_columns(0, matrix_);
    engine->seal();
    const fake_cuda::ScopedFaults faults("spoil=scan_" + tile);
    engine->check_kernels(canary_, kBatchMax);
    const std::string wrong = tile.substr(0, tile.find('<'));
    for (const std::string kernel : {"dp4a", "mma", "wgmma"}) {
      EXPECT_EQ(record->is_fit(kernel), kernel != wrong) << tile << ", " << kernel;
    }
    EXPECT_NE(record->why_unfit(wrong)->find("differ from those that the host computed"),
              std::string::npos);
  }
}

// One word of the matrix that is not what it was: the canary's product tells.
TEST_F(EmulatedCudaCanary, FindsAMatrixThatIsAnother) {
  matrix_[7 * kRows + 100] ^= 4;
  const auto engine = this->engine();
  EXPECT_THROW(engine->check_kernels(canary_, kBatchMax), DeviceLostError);
  EXPECT_NE(record_->why_unfit("mma")->find("first column 7 of query 0"), std::string::npos)
      << *record_->why_unfit("mma");
}

// A byte of the device's memory that is not what it was when the matrix was sealed: no kernel is to
// blame, neither before the first batch nor with one.
TEST_F(EmulatedCudaCanary, BlamesNoKernelForAMatrixThatHasChanged) {
  DeviceMatrix matrix(0, kRows, kColumns, 0);
  matrix.set_columns(0, matrix_);
  matrix.check();
  Scanner scanner(matrix, "", record_);
  const auto pipeline =
      make_device_answer_pipeline(scanner, matrix, {kQueryBits, kResponseBits}, kSlots, kBatchMax);
  pipeline->set_canary(canary_, kNever);
  EXPECT_EQ(answer(*pipeline, 5), "right");
  ASSERT_EQ(cudaMemset(const_cast<int8_t*>(matrix.data()) + 3 * matrix.pitch() + 10,
                       matrix_[3 * kRows + 10] ^ 0x40, 1),
            cudaSuccess);
  EXPECT_FALSE(matrix.is_as_sent());
  const std::string lost = answer(*pipeline, 5);
  EXPECT_EQ(lost.substr(0, 50), "lost: the matrix has changed in the device's memor") << lost;
  try {
    scanner.check_kernels(canary_, kBatchMax);
    ADD_FAILURE();
  } catch (const DeviceLostError& error) {
    EXPECT_NE(std::string(error.what()).find("first column 3 of query 0"), std::string::npos)
        << error.what();
  }
  for (const std::string kernel : {"dp4a", "mma", "wgmma"}) EXPECT_TRUE(record_->is_fit(kernel));
}

// Where the device has no memory for the checksum, the kernel is kept out of use.
TEST_F(EmulatedCudaCanary, BlamesTheKernelWhereTheMatrixCannotBeChecked) {
  const auto engine = this->engine();
  const auto pipeline = this->pipeline(*engine, kNever);
  // The first wait is for the product of the canary, the second one the checksum's.
  const fake_cuda::ScopedFaults faults("spoil=scan_mma,fail=cudaStreamSynchronize@1:2");
  const std::string withheld = answer(*pipeline, 5);
  EXPECT_NE(withheld.find("the kernel cuda:mma is wrong"), std::string::npos) << withheld;
  EXPECT_FALSE(record_->is_fit("mma"));
}

// Where kernels are timed, it is while they are checked: within the caller's limit of time.
TEST_F(EmulatedCudaCanary, TimesTheKernelsThatPass) {
  const auto calibrations = std::make_shared<Calibrations>(0);
  const auto engine = make_cuda_engine("", 0, record_, kRows, kColumns, {}, calibrations);
  engine->set_columns(0, matrix_);
  engine->seal();
  EXPECT_FALSE(calibrations->find(kRows, kColumns));
  const fake_cuda::ScopedFaults faults("spoil=scan_wgmma");
  engine->check_kernels(canary_, kBatchMax);
  const auto measured = calibrations->find(kRows, kColumns);
  ASSERT_TRUE(measured);
  EXPECT_FALSE(measured->wgmma_for_many) << "it is in quarantine";
}

TEST_F(EmulatedCudaCanary, EndsWhereANamedKernelIsWrong) {
  const auto engine = this->engine("mma");
  const fake_cuda::ScopedFaults faults("spoil=scan_mma<64>");
  try {
    engine->check_kernels(canary_, kBatchMax);
    ADD_FAILURE();
  } catch (const DeviceLostError& error) {
    EXPECT_NE(std::string(error.what()).find("cuda:mma is in quarantine"), std::string::npos);
  }
}

// A batch with room for the canary has it, and its responses are as they are without.
TEST_F(EmulatedCudaCanary, RidesAlongWhereThereIsRoom) {
  const auto engine = this->engine();
  const auto pipeline = this->pipeline(*engine, kNever);
  // The kernel for many: 5, 6 and 7 queries leave room in a tile of 8, and 33 to 39 in one of 64.
  for (const size_t count : {5, 6, 7, 33, 39}) EXPECT_EQ(answer(*pipeline, count), "right");
  EXPECT_EQ(checks("mma", CheckStage::kCanary), 5u);
  // A full tile, a full batch: no room, and the last check of their tiles was a moment ago.
  for (const size_t count : {8, 40}) EXPECT_EQ(answer(*pipeline, count), "right");
  EXPECT_EQ(checks("mma", CheckStage::kCanary), 5u);
  // Other tiles, and few queries, have had none.
  for (const size_t count : {16, 32, 16, 32}) EXPECT_EQ(answer(*pipeline, count), "right");
  EXPECT_EQ(checks("mma", CheckStage::kCanary), 7u);
  for (const size_t count : {1, 2, 3, 1}) EXPECT_EQ(answer(*pipeline, count), "right");
  EXPECT_EQ(checks("dp4a", CheckStage::kCanary), 3u);
}

// However often other tiles of the same kernel are right.
TEST_F(EmulatedCudaCanary, FindsATileThatIsWrongWhereNoBatchOfItHasRoom) {
  const auto engine = this->engine();
  const auto pipeline = this->pipeline(*engine, kNever);
  const fake_cuda::ScopedFaults faults("spoil=scan_mma<128>");
  EXPECT_EQ(answer(*pipeline, 5), "right");
  EXPECT_EQ(answer(*pipeline, 32).substr(0, 7), "failed:");
  EXPECT_EQ(answer(*pipeline, 32), "right") << "by wgmma";
}

// Where there is no room, it is computed by itself, by the same kernel.
TEST_F(EmulatedCudaCanary, IsComputedByItselfWhenItIsDue) {
  const auto engine = this->engine();
  const auto pipeline = this->pipeline(*engine, std::chrono::milliseconds(0));
  for (const size_t count : {1, 2, 3, 8, 16, 32, 40}) EXPECT_EQ(answer(*pipeline, count), "right");
  EXPECT_EQ(checks("dp4a", CheckStage::kCanary), 3u);
  EXPECT_EQ(checks("mma", CheckStage::kCanary), 4u);
}

TEST_F(EmulatedCudaCanary, WithholdsTheBatchOfAWrongProductAndTakesAnotherKernel) {
  const auto engine = this->engine();
  const auto pipeline = this->pipeline(*engine, kNever);
  const fake_cuda::ScopedFaults faults("spoil=scan_mma@2+");
  EXPECT_EQ(answer(*pipeline, 5), "right");
  EXPECT_EQ(answer(*pipeline, 6), "right");
  const std::string withheld = answer(*pipeline, 7);
  EXPECT_EQ(withheld.substr(0, 8), "failed: ") << withheld;
  EXPECT_NE(withheld.find("the kernel cuda:mma is wrong"), std::string::npos) << withheld;
  EXPECT_NE(withheld.find("in a batch of 8"), std::string::npos) << withheld;
  EXPECT_FALSE(record_->is_fit("mma"));
  // wgmma takes its place.
  EXPECT_EQ(answer(*pipeline, 7), "right");
  EXPECT_EQ(checks("wgmma", CheckStage::kCanary), 1u);
}

// A full batch is on the device next to the one whose canary shows that their kernel is wrong, or
// that begins with such a check.
TEST_F(EmulatedCudaCanary, WithholdsTheOtherBatchOfAWrongKernelToo) {
  const auto put = [&](AnswerPipeline& pipeline, size_t count) {
    for (size_t i = 0; i < count; ++i) pipeline.put(i, sequence(query_words(), kQueryBits));
  };
  const auto engine = this->engine();
  const auto pipeline = this->pipeline(*engine, kNever);
  put(*pipeline, 45);
  pipeline->check();
  {
    const fake_cuda::ScopedFaults faults("spoil=scan_mma");
    pipeline->begin(0, 5);
    pipeline->begin(5, 40);
    EXPECT_THROW(pipeline->finish(), ResourceError);
    EXPECT_FALSE(record_->is_fit("mma"));
    EXPECT_THROW(pipeline->finish(), ResourceError);
  }
  EXPECT_EQ(answer(*pipeline, 40), "right");

  const auto often = this->pipeline(*engine, std::chrono::milliseconds(0));
  put(*often, 80);
  {
    // Of the first batch the check is right, and what follows is not.
    const fake_cuda::ScopedFaults faults("spoil=scan_wgmma@1+");
    often->begin(0, 40);
    EXPECT_THROW(often->begin(40, 40), ResourceError);
    EXPECT_THROW(often->finish(), ResourceError);
  }
}

// The reason for one wrong kernel may be one for others, however short a time ago they were right.
TEST_F(EmulatedCudaCanary, ChecksEveryOtherKernelAfterAWrongOne) {
  const auto engine = this->engine();
  const auto pipeline = this->pipeline(*engine, kNever);
  EXPECT_EQ(answer(*pipeline, 1), "right");
  EXPECT_EQ(answer(*pipeline, 1), "right");
  EXPECT_EQ(checks("dp4a", CheckStage::kCanary), 1u);
  const fake_cuda::ScopedFaults faults("spoil=scan_mma,spoil=scan_dp4a");
  EXPECT_EQ(answer(*pipeline, 5).substr(0, 7), "failed:");
  EXPECT_EQ(answer(*pipeline, 1).substr(0, 7), "failed:") << "dp4a is wrong now, too";
  EXPECT_EQ(answer(*pipeline, 1), "right") << "by wgmma";
}

TEST_F(EmulatedCudaCanary, BeginsNoBatchWithAKernelThatTheCheckBeforeFoundWrong) {
  const auto engine = this->engine();
  const auto pipeline = this->pipeline(*engine, std::chrono::milliseconds(0));
  const fake_cuda::ScopedFaults faults("spoil=scan_dp4a<1>@0");
  EXPECT_NE(answer(*pipeline, 1).find("failed: the kernel cuda:dp4a is wrong"), std::string::npos);
  EXPECT_EQ(answer(*pipeline, 1), "right") << "by another kernel";
}

TEST_F(EmulatedCudaCanary, IsComputedByEveryKernelWhileThereAreNoBatches) {
  const auto engine = this->engine();
  const auto pipeline = this->pipeline(*engine, kNever);
  pipeline->check();
  EXPECT_EQ(checks("dp4a", CheckStage::kCanary), 1u);
  EXPECT_EQ(checks("mma", CheckStage::kCanary), 1u);
  pipeline->check();
  EXPECT_EQ(checks("mma", CheckStage::kCanary), 1u) << "an interval has not passed";

  const auto again = this->pipeline(*engine, std::chrono::milliseconds(0));
  const fake_cuda::ScopedFaults faults("spoil=scan_mma");
  EXPECT_THROW(again->check(), ResourceError);
  EXPECT_FALSE(record_->is_fit("mma"));
  EXPECT_NO_THROW(again->check()) << "by those that are left";
}

TEST_F(EmulatedCudaCanary, LosesTheDeviceWhenEveryKernelWasWrong) {
  const auto engine = this->engine();
  const auto pipeline = this->pipeline(*engine, kNever);
  const fake_cuda::ScopedFaults faults("spoil=scan_mma,spoil=scan_wgmma,spoil=scan_dp4a");
  EXPECT_EQ(answer(*pipeline, 5).substr(0, 7), "failed:");
  EXPECT_EQ(answer(*pipeline, 5).substr(0, 7), "failed:");
  EXPECT_EQ(answer(*pipeline, 5).substr(0, 5), "lost:");
}

// Nothing takes the place of what rounds, and the scan is not blamed for it.
TEST_F(EmulatedCudaCanary, LosesTheDeviceWhenRoundingIsWrong) {
  const auto engine = this->engine();
  const auto pipeline = this->pipeline(*engine, kNever);
  const fake_cuda::ScopedFaults faults("spoil=round_products");
  const std::string lost = answer(*pipeline, 5);
  EXPECT_EQ(lost.substr(0, 5), "lost:");
  EXPECT_NE(lost.find("rounding is wrong"), std::string::npos) << lost;
  EXPECT_TRUE(record_->is_fit("mma"));
  EXPECT_FALSE(record_->is_fit("rounding"));
}

// Packing that is wrong loses the device, too, and packing that was found wrong before is not used.
TEST_F(EmulatedCudaCanary, LosesTheDeviceWhenPackingIsWrong) {
  layout_.lwe = find_lwe_params("ring-2048");
  const std::shared_ptr<uint32_t[]> table(new uint32_t[kTableWords]);
  for (size_t i = 0; i < kTableWords; ++i) {
    table[i] = static_cast<uint32_t>(random_.below(ring::kPackingModulus));
  }
  const std::vector<SharedPackingTable> tables(1, table);
  complete_canary(canary_, layout_, tables, 1);
  const auto engine = this->engine("dp4a");
  const WireBits bits{kQueryBits, kResponseBits};
  const auto pipeline = engine->make_packed_answer_pipeline(bits, tables, 2, 1);
  pipeline->set_canary(canary_, std::chrono::milliseconds(0));
  pipeline->check();
  EXPECT_EQ(checks("dp4a", CheckStage::kCanary), 1u);
  {
    const fake_cuda::ScopedFaults faults("spoil=finish_packs");
    EXPECT_THROW(pipeline->check(), DeviceLostError);
  }
  EXPECT_TRUE(record_->is_fit("dp4a"));
  EXPECT_FALSE(record_->is_fit("packing"));
  EXPECT_THROW(engine->make_packed_answer_pipeline(bits, tables, 2, 1), DeviceLostError);
}

}  // namespace
}  // namespace blindfuse
