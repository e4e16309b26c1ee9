// Every CUDA kernel: no races, and no barrier, fence, wait or commit that it can do without, except
// those that are listed.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "tests/cuda/races/mutation.h"
#include "tests/paths.h"

namespace blindfuse::races {
namespace {

TEST(KernelRaces, Scans) {
  for (const Subject& subject : scan_subjects()) check(subject);
}

TEST(KernelRaces, Packing) {
  for (const Subject& subject : packing_subjects()) check(subject);
}

TEST(KernelRaces, Tables) {
  for (const Subject& subject : table_subjects()) check(subject);
}

TEST(KernelRaces, SecondLevel) {
  for (const Subject& subject : second_level_subjects()) check(subject);
}

// As the source has them.
TEST(KernelRaces, NoKernelIsLeftOut) {
  std::set<std::string> in_source, looked_at;
  // Of scan_mma<16> the part before the tile.
  for (const auto* subjects :
       {&scan_subjects(), &packing_subjects(), &table_subjects(), &second_level_subjects()}) {
    for (const Subject& subject : *subjects) {
      looked_at.insert(subject.name.substr(0, subject.name.find('<')));
    }
  }
  const std::regex kernel(R"(__global__\s+void\s+(?:__launch_bounds__\([^{;]*\)\s*)?(\w+)\()");
  for (const char* folder : {"cuda/scan/kernels", "cuda/packing/kernels"}) {
    for (const auto& entry :
         std::filesystem::directory_iterator(paths::source_folder() + '/' + folder)) {
      std::ifstream file(entry.path());
      const std::string text(std::istreambuf_iterator<char>(file), {});
      for (std::sregex_iterator at(text.begin(), text.end(), kernel), end; at != end; ++at) {
        in_source.insert((*at)[1]);
      }
    }
  }
  EXPECT_EQ(in_source, looked_at);
}

}  // namespace
}  // namespace blindfuse::races
