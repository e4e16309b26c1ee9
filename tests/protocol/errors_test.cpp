#include "src/base/errors.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <type_traits>

namespace blindfuse {
namespace {

// A caller that handles one kind must not swallow the other.
static_assert(!std::is_base_of_v<InputError, ResourceError>);
static_assert(!std::is_base_of_v<ResourceError, InputError>);
static_assert(std::is_base_of_v<std::runtime_error, InputError>);
static_assert(std::is_base_of_v<std::runtime_error, ResourceError>);

TEST(Errors, AnInvariantThatHoldsIsSilent) { invariant(true, "one is one"); }

using ErrorsDeathTest = testing::Test;

TEST_F(ErrorsDeathTest, ABrokenInvariantAbortsWithItsPlace) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_DEATH(invariant(false, "one is two"),
               "errors_test\\.cpp:[0-9]+: broken invariant: one is two");
}

}  // namespace
}  // namespace blindfuse
