// Zeroed words, or an error that people understand.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include "src/base/errors.h"

namespace blindfuse {

// Throws ResourceError, with `what` and the bytes in the message, if there is no memory for them.
inline std::vector<uint32_t> zeroed_words(const char* what, uint64_t count) {
  try {
    return std::vector<uint32_t>(count);
  } catch (const std::exception&) {  // bad_alloc, or length_error
    throw ResourceError("no memory for the " + std::string(what) + ", " +
                        std::to_string(count * sizeof(uint32_t)) +
                        " bytes; use a machine with more, or make more shards (--shards)");
  }
}

}  // namespace blindfuse
