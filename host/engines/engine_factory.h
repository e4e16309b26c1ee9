// Makes engines by the names that --engine takes.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/engine/engine_maker.h"

namespace blindfuse {

// The name of an engine on a GPU: "cuda", "cuda:KERNEL", "cuda@DEVICE" or "cuda:KERNEL@DEVICE".
struct CudaName {
  std::string kernel;  // empty: the fastest
  int device = 0;
};

// Returns nothing if it is not the name of an engine on a GPU.
std::optional<CudaName> parse_cuda_name(std::string_view name);

// "auto", "cpu", "cpu:KERNEL", "cuda" or "cuda:KERNEL", the last two with "@DEVICE" or without.
// "auto" is a CUDA device if there is one. thread_count 0: one a processor (of the CPU). Throws
// UsageError for an engine that does not exist or that this machine cannot run. The message names
// the engines that it can run.
std::unique_ptr<EngineMaker> make_engine_maker(std::string_view name, unsigned thread_count);

// True if this program may have a GPU: it has the CUDA engine, and NVIDIA's driver is installed.
// Makes no call of CUDA.
bool may_have_device();

// Engines on this device with these kernels, the fastest of them for each batch. Throws the errors
// of make_engine_maker.
std::unique_ptr<EngineMaker> make_device_engine_maker(std::vector<std::string> kernels, int device);

// Watches the calls of all devices as watch_device_calls does (cuda/device/device_call.h).
std::shared_ptr<void> watch_device(std::chrono::milliseconds limit,
                                   std::function<void(const std::string& what)> on_hang);

// One engine of that kind, for a matrix of this size. Throws the errors of make_engine_maker and
// EngineMaker::make_engine.
std::unique_ptr<Engine> make_engine(std::string_view name, uint64_t row_count,
                                    uint64_t column_count, unsigned thread_count);

// The engines and kernels that this program has for this processor, and for any GPU. Makes no call
// of CUDA.
std::vector<std::string> built_in_engines();

// Every name that make_engine_maker takes on this machine, "auto" first.
std::vector<std::string> engine_names();

}  // namespace blindfuse
