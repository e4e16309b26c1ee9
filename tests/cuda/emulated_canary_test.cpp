// A GPU that computes wrong is found out by a query whose response the host knows: with batches of
// clients' queries, and in between.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/protocol/public_polynomials.h"
#include "tests/cuda/canary_fixture.h"
#include "tests/cuda/fake_faults.h"

namespace blindfuse::canary_testing {
namespace {

using ::testing::HasSubstr;

using EmulatedCudaCanary = CanaryFixture;

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
  EXPECT_EQ(answer(*pipeline, 32), "right") << "by wgmma-tma";
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
  // wgmma-tma takes its place.
  EXPECT_EQ(answer(*pipeline, 7), "right");
  EXPECT_EQ(checks("wgmma-tma", CheckStage::kCanary), 1u);
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
    const fake_cuda::ScopedFaults faults("spoil=scan_wgmma_tma@1+");
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
  EXPECT_EQ(answer(*pipeline, 1), "right") << "by wgmma-tma";
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
  EXPECT_NO_THROW(again->check());
  EXPECT_FALSE(record_->is_fit("mma"));
  EXPECT_EQ(checks("wgmma-tma", CheckStage::kCanary), 1u) << "what takes its place, at once";
}

// An engine that has answered no client yet is refused, and what is wrong for it stays in use for
// others: it may have been given wrong tables.
TEST_F(EmulatedCudaCanary, RefusesAPipelineWhoseFirstCheckIsWrong) {
  const auto engine = this->engine();
  const auto serving = this->pipeline(*engine, kNever);
  serving->check();
  const auto next = this->pipeline(*engine, kNever);
  {
    // The second one of its two batches.
    const fake_cuda::ScopedFaults faults("skip=round_products@1");
    try {
      next->check();
      ADD_FAILURE();
    } catch (const DeviceLostError& error) {
      ADD_FAILURE() << error.what();
    } catch (const ResourceError& error) {
      EXPECT_NE(std::string(error.what()).find("the GPU's rounding is wrong for this epoch"),
                std::string::npos)
          << error.what();
    }
  }
  EXPECT_TRUE(record_->is_fit("rounding"));
  uint64_t failed = 0;
  for (const auto& count : record_->counts()) {
    if (count.kernel == "rounding" && count.stage == CheckStage::kCanary) failed = count.failed;
  }
  EXPECT_EQ(failed, 1u);
  EXPECT_EQ(answer(*serving, 5), "right");
  // Once it was right, a wrong one is the device's end.
  EXPECT_NO_THROW(next->check());
  const fake_cuda::ScopedFaults faults("skip=round_products");
  EXPECT_EQ(answer(*next, 5).substr(0, 5), "lost:");
  EXPECT_FALSE(record_->is_fit("rounding"));
}

TEST_F(EmulatedCudaCanary, LosesTheDeviceWhenEveryKernelWasWrong) {
  const auto engine = this->engine();
  const auto pipeline = this->pipeline(*engine, kNever);
  const fake_cuda::ScopedFaults faults(
      "spoil=scan_mma,spoil=scan_wgmma,spoil=scan_wgmma_tma,spoil=scan_dp4a");
  for (int kernel = 0; kernel < 3; ++kernel) {
    EXPECT_EQ(answer(*pipeline, 5).substr(0, 7), "failed:");
  }
  EXPECT_EQ(answer(*pipeline, 5).substr(0, 5), "lost:");
}

// Nothing takes the place of what rounds, and the scan is not blamed for it.
TEST_F(EmulatedCudaCanary, LosesTheDeviceWhenRoundingIsWrong) {
  const auto engine = this->engine();
  const auto pipeline = this->pipeline(*engine, kNever);
  const fake_cuda::ScopedFaults faults("skip=round_products");
  const std::string lost = answer(*pipeline, 5);
  EXPECT_EQ(lost.substr(0, 5), "lost:");
  EXPECT_NE(lost.find("rounding is wrong"), std::string::npos) << lost;
  EXPECT_TRUE(record_->is_fit("mma"));
  EXPECT_FALSE(record_->is_fit("rounding"));
}

// What was found wrong by the canary of one batch has made the responses of the others, too: of the
// one that is on the device next to it, of those that still wait, and of another epoch.
TEST_F(EmulatedCudaCanary, WithholdsTheOtherBatchesOfWrongRoundingToo) {
  const auto engine = this->engine();
  const auto pipeline = this->pipeline(*engine, kNever);
  const auto other = this->pipeline(*engine, kNever);
  for (size_t i = 0; i < 45; ++i) pipeline->put(i, sequence(query_words(), kQueryBits));
  pipeline->check();
  other->check();
  const fake_cuda::ScopedFaults faults("skip=round_products");
  pipeline->begin(0, 5);
  pipeline->begin(5, 40);  // no room for a canary
  EXPECT_THROW(pipeline->finish(), DeviceLostError);
  EXPECT_THROW(pipeline->finish(), DeviceLostError);
  EXPECT_EQ(answer(*pipeline, 40).substr(0, 5), "lost:");
  EXPECT_EQ(answer(*other, 40).substr(0, 5), "lost:");
  EXPECT_THROW(other->check(), DeviceLostError);
}

// Packing that is wrong loses the device, too, and packing that was found wrong before is not used.
TEST_F(EmulatedCudaCanary, LosesTheDeviceWhenPackingIsWrong) {
  layout_.lwe = find_lwe_params("ring-2048");
  const std::vector<SharedPackingTable> tables(1, random_table());
  complete_canary(canary_, layout_, tables, 1, seeded_random(143));
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

// Responses of two levels, with a short key, so that an emulator is soon through.
class EmulatedCudaSecondLevelCanary : public CanaryFixture {
 protected:
  EmulatedCudaSecondLevelCanary() : tables_(1, random_table()) {
    layout_.lwe = find_lwe_params("ring-2048");
    layout_.shard_count = kColumns;
    layout_.record = {.digest_bytes = 0, .length_bytes = 0, .value_bytes = 1};
    layout_.second = SecondLevel{
        .group_shards = 2, .query_bits = 25, .mask_bits = 19, .response_bits = 17, .key_order = 2};
    ChaChaKey seed{};
    seed[0] = 1;
    second_.emplace(layout_, ring::PublicPolynomials(seed));
    spec_ = second_->spec(layout_);
    complete_canary(canary_, layout_, tables_, 1, seeded_random(144), &spec_);
    query_ = canary_.query;
    query_.insert(query_.end(), canary_.second_query.begin(), canary_.second_query.end());
  }

  std::unique_ptr<AnswerPipeline> pipeline(Engine& engine, std::chrono::milliseconds interval) {
    auto made =
        engine.make_packed_answer_pipeline({kQueryBits, kResponseBits}, tables_, 3, 3, &spec_);
    made->set_canary(canary_, interval);
    return made;
  }
  // Asks for a batch of the canary's own query, whose responses are known: "right" or "wrong", or
  // the error. count 0: has the pipeline check itself.
  std::string compute(AnswerPipeline& pipeline, size_t count) const {
    try {
      if (count == 0) {
        pipeline.check();
        return "right";
      }
      for (size_t slot = 0; slot < count; ++slot) pipeline.put(slot, query_);
      pipeline.begin(0, count);
      const auto responses = pipeline.finish();
      const size_t each = canary_.second_response.size();
      for (size_t i = 0; i < count; ++i) {
        if (!std::ranges::equal(responses.subspan(i * each, each), canary_.second_response)) {
          return "wrong";
        }
      }
      return "right";
    } catch (const DeviceLostError& error) {
      return std::string("lost: ") + error.what();
    } catch (const UnfitDeviceError& error) {
      return std::string("unfit: ") + error.what();
    }
  }

  const std::vector<SharedPackingTable> tables_;
  std::optional<SecondLevelPolynomials> second_;
  SecondLevelSpec spec_;
  std::vector<uint8_t> query_;
};

// By itself, in a batch with room for it, and where nothing has arrived.
TEST_F(EmulatedCudaSecondLevelCanary, LosesTheDeviceWhenItIsWrong) {
  struct Case {
    const char* faults;
    bool rides_along;
  };
  for (const Case& c : {Case{"spoil=second_chains", false}, Case{"skip=second_chains", false},
                        Case{"skip=second_products", true}, Case{"skip=second_chains", true},
                        Case{"drop=cudaMemcpy2DAsync", true}}) {
    SCOPED_TRACE(std::string(c.faults) + (c.rides_along ? ", in a batch" : ""));
    record_ = std::make_shared<KernelRecord>();
    const auto engine = this->engine("mma");
    const auto pipeline =
        this->pipeline(*engine, c.rides_along ? kNever : std::chrono::milliseconds(0));
    const size_t count = c.rides_along ? 2 : 0;
    EXPECT_EQ(compute(*pipeline, count), "right");
    EXPECT_EQ(compute(*pipeline, count), "right");
    const fake_cuda::ScopedFaults faults(c.faults);
    EXPECT_THAT(compute(*pipeline, count),
                HasSubstr("lost: the GPU's packing is wrong: the second level's response to the "
                          "server's own query is wrong in a batch of "));
    EXPECT_TRUE(record_->is_fit("mma"));
    EXPECT_FALSE(record_->is_fit("packing"));
  }
}

// Nothing was answered from the epoch, which alone is refused.
TEST_F(EmulatedCudaSecondLevelCanary, RefusesAnEpochForWhichItIsWrong) {
  const auto engine = this->engine("mma");
  const auto pipeline = this->pipeline(*engine, kNever);
  {
    const fake_cuda::ScopedFaults faults("skip=second_chains");
    EXPECT_THAT(compute(*pipeline, 0), HasSubstr("unfit: the GPU's packing is wrong for this "
                                                 "epoch: the second level's response"));
  }
  EXPECT_TRUE(record_->is_fit("packing"));
  EXPECT_EQ(compute(*pipeline, 0), "right");
}

// A batch without room for it comes after a batch of the server's own, in which the canary may have
// any place.
TEST_F(EmulatedCudaSecondLevelCanary, IsAnsweredFromAnyPlace) {
  const auto engine = this->engine("mma");
  const auto pipeline = this->pipeline(*engine, std::chrono::milliseconds(0));
  // Other words, and other numbers for rows: what is next to the canary has other responses.
  std::vector<uint8_t> other = query_;
  for (size_t i = 0; i < 1000; ++i) other[i] ^= 0x5a;
  for (size_t i = other.size() - 40; i < other.size(); ++i) other[i] ^= 0x5a;
  for (size_t slot = 0; slot < 3; ++slot) pipeline->put(slot, other);
  for (int i = 0; i < 12; ++i) {
    pipeline->begin(0, 3);
    EXPECT_NO_THROW(pipeline->finish());
  }
  EXPECT_EQ(checks("mma", CheckStage::kCanary), 12u);
}

// A place in the batch that is wrong, whichever it is: the copy to the host alters the first
// response.
TEST_F(EmulatedCudaCanary, IsInAnyPlaceOfABatch) {
  for (const size_t count : {1, 3, 7}) {
    record_ = std::make_shared<KernelRecord>();
    const auto engine = this->engine("mma");
    const auto pipeline = this->pipeline(*engine, kNever);
    // The tile of 4, or of 8, has had a right response; each batch has room for another one.
    for (int i = 0; i < 20; ++i) EXPECT_EQ(answer(*pipeline, count), "right");
    const fake_cuda::ScopedFaults faults("alter=cudaMemcpy2DAsync");
    std::string last;
    // With a place that is fixed and another one, never; with any place, not once in 10^11 runs.
    for (int i = 0; i < 200 && last.substr(0, 5) != "lost:"; ++i) last = answer(*pipeline, count);
    EXPECT_EQ(last.substr(0, 5), "lost:") << count << " queries";
  }
}

// Responses that do not come to the host leave those of an earlier batch there.
TEST_F(EmulatedCudaCanary, FindsResponsesThatDidNotCome) {
  for (int i = 0; i < 20; ++i) {
    record_ = std::make_shared<KernelRecord>();
    const auto engine = this->engine("mma");
    const auto pipeline = this->pipeline(*engine, kNever);
    // One query and the canary, so that every other time it has the place of a right one.
    for (int batch = 0; batch < 2 + i % 2; ++batch) EXPECT_EQ(answer(*pipeline, 1), "right");
    const fake_cuda::ScopedFaults faults("drop=cudaMemcpy2DAsync");
    EXPECT_NE(answer(*pipeline, 1).find("the response to the server's own query is wrong"),
              std::string::npos);
  }
}

using EmulatedCudaCanaryDeathTest = EmulatedCudaCanary;

TEST_F(EmulatedCudaCanaryDeathTest, HasTheSizesOfItsMatrix) {
  const auto engine = this->engine();
  const auto pipeline =
      engine->make_answer_pipeline({kQueryBits, kResponseBits}, kSlots, kBatchMax);
  for (auto member : {&Canary::query, &Canary::response}) {
    Canary canary = canary_;
    (canary.*member).pop_back();
    EXPECT_DEATH(pipeline->set_canary(canary, kNever), "a canary of this matrix");
  }
  Canary canary = canary_;
  canary.products.pop_back();
  EXPECT_DEATH(pipeline->set_canary(canary, kNever), "a canary of this matrix");
  canary = canary_;
  canary.second_response.resize(1);
  EXPECT_DEATH(pipeline->set_canary(canary, kNever), "a canary of this second level");
}

}  // namespace
}  // namespace blindfuse::canary_testing
