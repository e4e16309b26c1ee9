// Plans the second level of packed responses.
#pragma once

#include <cstdint>
#include <optional>

#include "src/arithmetic/layout.h"

namespace blindfuse {

// Half of the failures that a look-up may have: the first level has as many.
inline constexpr double kLevelFailureLog2Max = kFailureLog2Max - 1;

// The most columns of a group with a short key: its order is at most half of a pack.
inline constexpr uint32_t kShortKeyColumnsMax = 512;

// The second level that adds the fewest bytes to a query and a response of this layout, with a
// failure bound of its own of at most kLevelFailureLog2Max. layout: with its shards, its record and
// response_bits, without a second level. has_short_key: with a key whose order is the least power
// of two that a row's columns fit. Nothing if there is none.
std::optional<SecondLevel> plan_second_level(const Layout& layout, bool has_short_key);

}  // namespace blindfuse
