// Engines by name, as --engine takes them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "host/matrix.h"
#include "src/engine.h"

namespace blindfuse {

// "auto", "cpu", or "cpu:KERNEL". The matrix must outlive the engine. thread_count 0: one a
// processor. Throws BadInput for an engine that does not exist or that this machine cannot run,
// naming those it can.
std::unique_ptr<Engine> make_engine(std::string_view name, const Matrix& matrix,
                                    unsigned thread_count);

// Throws BadInput as make_engine would, without a matrix: for a name that is to be used much later.
void check_engine_name(std::string_view name);

// Every name that make_engine takes on this machine, "auto" first.
std::vector<std::string> engine_names();

}  // namespace blindfuse
