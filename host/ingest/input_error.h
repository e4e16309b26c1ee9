// Writes the messages of errors in an operator's input, always one line:
//
//   words.tsv, line 17: no tab; expected KEY<tab>VALUE
//
// Messages contain no control characters, and at most kExcerptBytes bytes of the data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/program/printable.h"

namespace blindfuse {

// A line of a text, or a row of an SQL result.
struct InputPlace {
  std::string_view name;  // of the source
  std::string_view unit;  // "line" or "row"
  uint64_t number = 0;    // 1-based
};

// Throw InputError. `problem` is "<what is wrong>; <what would be right>".
[[noreturn]] void fail_input(std::string_view name, std::string_view problem);
[[noreturn]] void fail_input(const InputPlace& place, std::string_view problem);

}  // namespace blindfuse
