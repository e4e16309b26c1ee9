// Whether a GPU was there for the tests of this run, so that none being there is seen.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "host/engines/engine_factory.h"
#include "src/base/errors.h"
#include "tests/support.h"

namespace blindfuse {
namespace {

bool has_device() {
  const std::vector<std::string> names = engine_names();
  return std::ranges::find(names, "cuda") != names.end();
}

// Set BLINDFUSE_REQUIRE_GPU where one must be.
TEST(CudaDevice, IsThere) {
  if (has_device()) return;
  const std::string why = support::input_error_of([] { make_engine("cuda", 64, 1, 1); });
  ASSERT_EQ(std::getenv("BLINDFUSE_REQUIRE_GPU"), nullptr) << why;
  GTEST_SKIP() << "no test ran on a GPU: " << why;
}

// Asking for it by name is never answered with a CPU.
TEST(CudaDevice, IsAnErrorWhereThereIsNone) {
  if (has_device()) GTEST_SKIP() << "this machine has a GPU";
  for (const char* name : {"cuda", "cuda:mma", "cuda@1", "cuda:dp4a@0"}) {
    EXPECT_THROW(make_engine(name, 64, 1, 1), UsageError) << name;
  }
}

TEST(CudaDevice, IsTakenByAutoWhereThereIsOne) {
  const auto engine = make_engine("auto", 64, 1, 1);
  EXPECT_EQ(engine->name().starts_with("cuda"), has_device()) << engine->name();
}

TEST(CudaDevice, HasANumber) {
  for (const char* name :
       {"cuda@", "cuda@x", "cuda@-1", "cuda@0x", "cuda:@0", "cudas", "cuda@99"}) {
    EXPECT_THROW(make_engine(name, 64, 1, 1), UsageError) << name;
  }
}

}  // namespace
}  // namespace blindfuse
