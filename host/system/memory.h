// Memory for large data that is read as a whole again and again: matrices and packing tables.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/errors.h"

namespace blindfuse {

// Zeroed words. Throws ResourceError, with `what` and the bytes in the message, if there is no
// memory for them.
inline std::vector<uint32_t> zeroed_words(const char* what, uint64_t count) {
  try {
    return std::vector<uint32_t>(count);
  } catch (const std::exception&) {  // bad_alloc, or length_error
    throw ResourceError("no memory for the " + std::string(what) + ", " +
                        std::to_string(count * sizeof(uint32_t)) +
                        " bytes; use a machine with more, or make more shards (--shards)");
  }
}

// Throws ResourceError if the machine's memory cannot hold this many more bytes, or if the control
// group of this process must not. The message has `what` and the bytes needed and available.
void check_memory(std::string_view what, uint64_t bytes);

// Zeros, aligned to a page, in huge pages if the system has them. They take no memory until they
// are written. Throws ResourceError as check_memory does if the address space is exhausted.
std::shared_ptr<void> map_memory(std::string_view what, uint64_t bytes);

}  // namespace blindfuse
