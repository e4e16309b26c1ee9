// Where the tests find the source and the programs that they run.
#pragma once

#include <string>

namespace blindfuse::paths {

// The folder of the project's CMakeLists.txt; in a browser's tests, a folder that holds
// tests/vectors.
const std::string& source_folder();
// The folder of the programs blindfuse and blindfuse-client.
const std::string& program_folder();

}  // namespace blindfuse::paths
