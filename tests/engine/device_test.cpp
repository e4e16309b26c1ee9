// Whether a GPU was there for the tests of this run, so that none being there is seen.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "host/engines/engine_factory.h"
#include "src/base/errors.h"

namespace blindfuse {
namespace {

bool has_device() {
  const std::vector<std::string> names = engine_names();
  return std::ranges::find(names, "cuda") != names.end();
}

// Empty where there is one.
std::string why_no_cuda() {
  try {
    make_engine("cuda", 64, 1, 1);
  } catch (const UsageError& error) {  // a program without CUDA
    return error.what();
  } catch (const ResourceError& error) {  // a machine without a driver
    return error.what();
  }
  return "";
}

// Set BLINDFUSE_REQUIRE_GPU where one must be.
TEST(CudaDevice, IsThere) {
  if (has_device()) return;
  const std::string why = why_no_cuda();
  ASSERT_EQ(std::getenv("BLINDFUSE_REQUIRE_GPU"), nullptr) << why;
  GTEST_SKIP() << "no test ran on a GPU: " << why;
}

// Asking for it by name is never answered with a CPU.
TEST(CudaDevice, IsAnErrorWhereThereIsNone) {
  if (has_device()) GTEST_SKIP() << "this machine has a GPU";
  for (const char* name : {"cuda", "cuda:mma", "cuda@1", "cuda:dp4a@0"}) {
    // A UsageError where the program was built without CUDA; otherwise the machine may have one
    // later.
    EXPECT_THROW(make_engine(name, 64, 1, 1), std::runtime_error) << name;
  }
}

TEST(CudaDevice, IsTakenByAutoWhereThereIsOne) {
  const auto engine = make_engine("auto", 64, 1, 1);
  EXPECT_EQ(engine->name().starts_with("cuda"), has_device()) << engine->name();
}

TEST(CudaDevice, HasANumber) {
  for (const char* name : {"cuda@", "cuda@x", "cuda@-1", "cuda@0x", "cuda:@0", "cudas"}) {
    EXPECT_THROW(make_engine(name, 64, 1, 1), UsageError) << name;
  }
  if (!has_device()) return;
  EXPECT_THROW(make_engine("cuda@99", 64, 1, 1), UsageError);
}

}  // namespace
}  // namespace blindfuse
