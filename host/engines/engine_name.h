// The names of engines on a GPU.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace blindfuse {

// "cuda", "cuda:KERNEL", "cuda@DEVICE" or "cuda:KERNEL@DEVICE".
struct CudaName {
  std::string kernel;  // empty: the fastest
  int device = 0;
};

// Nothing if it is not the name of an engine on a GPU.
std::optional<CudaName> parse_cuda_name(std::string_view name);

}  // namespace blindfuse
