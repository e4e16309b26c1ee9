// What an epoch is refused with when it is loaded.
#pragma once

#include <filesystem>
#include <string>

#include "src/base/errors.h"
#include "tests/publish/builder_testing.h"

namespace blindfuse::builder_testing {

inline std::string error_of_loading(const std::filesystem::path& root) {
  try {
    load(root);
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace blindfuse::builder_testing
