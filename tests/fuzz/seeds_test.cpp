// What each fuzz target makes of its seeds: a target that no longer holds is found without a
// fuzzer. The build gives every target's entry the name of its file.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/paths.h"

using FuzzTarget = int(const uint8_t*, size_t);

extern "C" {
FuzzTarget bit_sequence_fuzz, csv_fuzz, epoch_table_fuzz, http_exchange_fuzz, http_response_fuzz,
    manifest_fuzz, ndjson_fuzz, packing_keys_fuzz, query_body_fuzz, tsv_fuzz;
}

namespace blindfuse {
namespace {

namespace fs = std::filesystem;

struct Target {
  std::string_view name;
  FuzzTarget* run;
};

constexpr Target kTargets[] = {
    {"bit_sequence", bit_sequence_fuzz},
    {"csv", csv_fuzz},
    {"epoch_table", epoch_table_fuzz},
    {"http_exchange", http_exchange_fuzz},
    {"http_response", http_response_fuzz},
    {"manifest", manifest_fuzz},
    {"ndjson", ndjson_fuzz},
    {"packing_keys", packing_keys_fuzz},
    {"query_body", query_body_fuzz},
    {"tsv", tsv_fuzz},
};

fs::path fuzz_folder() { return fs::path(paths::source_folder()) / "tests/fuzz"; }

class FuzzSeedsTest : public testing::TestWithParam<Target> {};

// A target ends the process where something does not hold.
TEST_P(FuzzSeedsTest, AllPass) {
  size_t count = 0;
  for (const auto& seed : fs::directory_iterator(fuzz_folder() / "corpus" / GetParam().name)) {
    SCOPED_TRACE(seed.path());
    std::ifstream file(seed.path(), std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    EXPECT_EQ(GetParam().run(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()), 0);
    ++count;
  }
  EXPECT_GT(count, 0u);
}

INSTANTIATE_TEST_SUITE_P(Fuzz, FuzzSeedsTest, testing::ValuesIn(kTargets),
                         [](const auto& target) { return std::string(target.param.name); });

TEST(FuzzTargetsTest, EveryOneIsListed) {
  std::set<std::string> listed, present;
  for (const Target& target : kTargets) listed.insert(std::string(target.name) + "_fuzz.cpp");
  for (const auto& entry : fs::directory_iterator(fuzz_folder())) {
    const std::string name = entry.path().filename();
    if (name.ends_with("_fuzz.cpp")) present.insert(name);
  }
  EXPECT_EQ(listed, present);
}

}  // namespace
}  // namespace blindfuse
