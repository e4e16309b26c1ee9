// Engines by name, as --engine takes them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/engine/engine_maker.h"

namespace blindfuse {

// "auto", "cpu", "cpu:KERNEL", "cuda" or "cuda:KERNEL", the last two with "@DEVICE" or without.
// "auto" is a CUDA device when there is one. thread_count 0: one a processor (of the CPU). Throws
// UsageError for an engine that does not exist or that this machine cannot run, naming those it
// can.
std::unique_ptr<EngineMaker> make_engine_maker(std::string_view name, unsigned thread_count);

// Whether there may be a GPU for this program: it has the CUDA engine, and NVIDIA's driver is
// installed. Makes no call of CUDA.
bool may_have_device();

// Engines on this device with this kernel ("" for the fastest), and a record that is there already.
// Throws what make_engine_maker throws.
std::unique_ptr<EngineMaker> make_device_engine_maker(std::string_view kernel, int device,
                                                      std::shared_ptr<KernelRecord> record);

// One engine of that kind, for a matrix of this size. Throws what make_engine_maker and
// EngineMaker::make_engine throw.
std::unique_ptr<Engine> make_engine(std::string_view name, uint64_t row_count,
                                    uint64_t column_count, unsigned thread_count);

// Every name that make_engine_maker takes on this machine, "auto" first.
std::vector<std::string> engine_names();

}  // namespace blindfuse
