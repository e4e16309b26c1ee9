// The products that make the hint, for engines that read the host's memory. No data is moved.
#pragma once

#include <memory>

#include "src/engine/engine.h"

namespace blindfuse {

// Uses the engine's multiply(), for which add() waits. Takes count * (rows_max + C) words. The
// engine outlives it.
std::unique_ptr<PanelProducts> make_cpu_panel_products(Engine& engine, size_t count,
                                                       uint64_t rows_max);

}  // namespace blindfuse
