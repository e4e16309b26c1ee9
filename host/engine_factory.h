// Engines by name, as --engine takes them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/engine.h"

namespace blindfuse {

// "auto", "cpu", "cpu:KERNEL", "cuda" or "cuda:KERNEL", the last two with "@DEVICE" or without, for
// a matrix of this size. "auto" is a CUDA device when there is one. thread_count 0: one a processor
// (of the CPU). Throws BadInput for an engine that does not exist or that this machine cannot run,
// naming those it can; EngineTrouble when memory cannot hold the matrix, which an engine on the CPU
// only throws when it is filled, as it may share some of it.
std::unique_ptr<Engine> make_engine(std::string_view name, uint64_t row_count,
                                    uint64_t column_count, unsigned thread_count);

// Makes an engine for a matrix of so many rows and columns.
using EngineMaker =
    std::function<std::unique_ptr<Engine>(uint64_t row_count, uint64_t column_count)>;

// Throws what make_engine would, without a matrix: for a name that is to be used much later.
void check_engine_name(std::string_view name);

// Every name that make_engine takes on this machine, "auto" first.
std::vector<std::string> engine_names();

}  // namespace blindfuse
