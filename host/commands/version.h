// What `blindfuse --version` says in addition to the version.
#pragma once

#include <string>

namespace blindfuse {

// Whether the page and the CUDA engine are in this program, and the engines that it has for this
// processor: a line each.
std::string built_in();

}  // namespace blindfuse
