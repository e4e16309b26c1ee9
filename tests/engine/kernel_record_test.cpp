#include "src/engine/kernel_record.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace blindfuse {
namespace {

TEST(KernelRecord, CountsChecksOfEachKernelAndStage) {
  KernelRecord record;
  EXPECT_TRUE(record.counts().empty());
  record.note_passed("mma", CheckStage::kSelfTest);
  record.note_passed("mma", CheckStage::kSelfTest);
  record.note_passed("mma", CheckStage::kMatrix);
  record.note_failed("dp4a", CheckStage::kSelfTest, "wrong");
  const auto counts = record.counts();
  ASSERT_EQ(counts.size(), 3u);
  EXPECT_EQ(counts[0].kernel, "dp4a");
  EXPECT_EQ(counts[0].passed, 0u);
  EXPECT_EQ(counts[0].failed, 1u);
  EXPECT_EQ(counts[1].kernel, "mma");
  EXPECT_EQ(counts[1].stage, CheckStage::kSelfTest);
  EXPECT_EQ(counts[1].passed, 2u);
  EXPECT_EQ(counts[2].stage, CheckStage::kMatrix);
}

// What fails once is not trusted again, whatever it passes later.
TEST(KernelRecord, KeepsWhatHasFailedInQuarantine) {
  std::vector<std::string> told;
  KernelRecord record([&](std::string_view kernel, CheckStage stage, const std::string& why) {
    told.push_back(std::string(kernel) + ", " + std::string(name_of(stage)) + ", " + why);
  });
  EXPECT_TRUE(record.is_fit("wgmma"));
  EXPECT_EQ(record.why_unfit("wgmma"), std::nullopt);
  record.note_failed("wgmma", CheckStage::kCanary, "3 of 7 words differ");
  record.note_failed("wgmma", CheckStage::kCanary, "again");
  record.note_passed("wgmma", CheckStage::kCanary);
  EXPECT_FALSE(record.is_fit("wgmma"));
  EXPECT_TRUE(record.is_fit("mma"));
  EXPECT_EQ(record.why_unfit("wgmma"), "3 of 7 words differ");
  EXPECT_EQ(told, std::vector<std::string>{"wgmma, canary, 3 of 7 words differ"});
}

// Where what it was given may be to blame.
TEST(KernelRecord, LeavesInUseWhatIsCountedAlone) {
  bool is_told = false;
  KernelRecord record([&](std::string_view, CheckStage, const std::string&) { is_told = true; });
  record.count_failed("packing", CheckStage::kCanary);
  ASSERT_EQ(record.counts().size(), 1u);
  EXPECT_EQ(record.counts()[0].failed, 1u);
  EXPECT_TRUE(record.is_fit("packing"));
  EXPECT_FALSE(is_told);
}

}  // namespace
}  // namespace blindfuse
