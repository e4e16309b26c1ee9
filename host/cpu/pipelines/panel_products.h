// The hint's products for engines that read the host's memory: nothing has to be moved.
#pragma once

#include <memory>

#include "src/engine/engine.h"

namespace blindfuse {

// By the engine's multiply(), which add() waits for. Takes count * (rows_max + C) words. The engine
// outlives it.
std::unique_ptr<PanelProducts> make_cpu_panel_products(Engine& engine, size_t count,
                                                       uint64_t rows_max);

}  // namespace blindfuse
