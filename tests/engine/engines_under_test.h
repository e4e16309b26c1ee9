// Which engines the tests run for, by name, and how such tests are called.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include "host/engines/engine_factory.h"

namespace blindfuse::support {

// A device that is emulated takes seconds for what others do at once.
#ifdef BLINDFUSE_FAKE_CUDA_RUNTIME
inline constexpr bool kIsEmulated = true;
#else
inline constexpr bool kIsEmulated = false;
#endif

// Engines whose memory is not the host's.
inline std::vector<std::string> device_engine_names() {
  std::vector<std::string> names = engine_names();
  std::erase_if(names, [](const std::string& name) { return !name.starts_with("cuda"); });
  return names;
}

// "cpu:avx2" is not a valid name of a test.
inline std::string name_of_test(const testing::TestParamInfo<std::string>& engine) {
  std::string name = engine.param;
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

}  // namespace blindfuse::support
