#include "host/commands/plan_report.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/publish/builder_testing.h"

namespace blindfuse {
namespace {

std::string name_in(const std::string& cpuinfo) {
  const builder_testing::TemporaryFolder root;
  std::filesystem::create_directory(root / "proc");
  std::ofstream(root / "proc" / "cpuinfo") << cpuinfo;
  return processor_name(root.path());
}

TEST(ProcessorName, IsTheModelOfTheFirstProcessor) {
  EXPECT_EQ(
      name_in("processor\t: 0\nmodel\t\t: 17\nmodel name\t: A 9000 @ 2: x \nmodel name\t: B\n"),
      "A 9000 @ 2: x");
}

TEST(ProcessorName, IsMadeOfNumbersWhereThereIsNoModel) {
  EXPECT_EQ(name_in("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n"),
            "CPU implementer 0x41, part 0xd4f");
}

TEST(ProcessorName, IsUnknownOtherwise) {
  for (const char* text :
       {"", "model name\t:\n", "model name of something : A\n", "CPU part : 1\n"}) {
    EXPECT_EQ(name_in(text), "unknown") << text;
  }
  EXPECT_EQ(processor_name("/nonexistent"), "unknown");
}

}  // namespace
}  // namespace blindfuse
