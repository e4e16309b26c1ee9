// The parts of a hint that a client names in a query string, shards or packs: "0-3,17".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/arithmetic/layout.h"

namespace blindfuse {

// Ranges in the order in which they were named; no part is named twice.
using PartSelection = std::vector<HintParts>;

// Throws InputError if the text is not a list of numbers and ranges of numbers 0 .. part_count-1,
// or names a number twice. The message names the faulty part by its place. what: "shard" or "pack".
PartSelection parse_part_selection(std::string_view text, uint32_t part_count,
                                   const std::string& what);

// The same selection as text; equal selections have equal texts.
std::string format_part_selection(const PartSelection& selection);

}  // namespace blindfuse
