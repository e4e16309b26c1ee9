// Memory for what is large and read whole, again and again: matrices and packing tables.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

namespace blindfuse {

// Throws ResourceError, naming `what` and the bytes needed and available, when the machine's memory
// cannot hold this many more, or the control group of this process must not.
void check_memory(std::string_view what, uint64_t bytes);

// Zeros, aligned to a page, in huge pages where the system has them; takes no memory until it is
// written. Throws ResourceError as check_memory does when there are not even addresses.
std::shared_ptr<void> map_memory(std::string_view what, uint64_t bytes);

}  // namespace blindfuse
