// Tests in which a copy of the process ends.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "tests/publish/builder_testing.h"

namespace blindfuse::server_testing {

// Each death happens in a process of its own ("threadsafe", since threads run). The test and
// that process have the same folder of state, which is temporary.
class ProcessDeathTest : public ::testing::Test {
 protected:
  ProcessDeathTest() {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    setenv("STATE_DIRECTORY", folder_.path().c_str(), 0);  // the copy keeps that of its maker
  }
  ~ProcessDeathTest() override { unsetenv("STATE_DIRECTORY"); }

  static std::filesystem::path state() { return getenv("STATE_DIRECTORY"); }

  const builder_testing::TemporaryFolder folder_;
};

}  // namespace blindfuse::server_testing
