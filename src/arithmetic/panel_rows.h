// Rows of a database, which are the columns of the public matrix, come in panels.
#pragma once

#include <cstdint>

namespace blindfuse {

inline constexpr uint32_t kPanelRows = 64;

}  // namespace blindfuse
