// The one file of the tests whose object depends on where the project lies: a compiler cache can
// give all the others to a copy of the source that lies elsewhere.
#include "tests/paths.h"

namespace blindfuse::paths {

const std::string& source_folder() {
  static const std::string folder = BLINDFUSE_SOURCE_DIR;
  return folder;
}

const std::string& program_folder() {
  static const std::string folder = BLINDFUSE_BINARY_DIR;
  return folder;
}

}  // namespace blindfuse::paths
