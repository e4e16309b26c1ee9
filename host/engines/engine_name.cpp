#include "host/engines/engine_name.h"

#include <charconv>

namespace blindfuse {

std::optional<CudaName> parse_cuda_name(std::string_view name) {
  if (!name.starts_with("cuda")) return std::nullopt;
  name.remove_prefix(4);
  CudaName result;
  if (const size_t at = name.find('@'); at != std::string_view::npos) {
    const std::string_view number = name.substr(at + 1);
    const char* end = number.data() + number.size();
    const auto [last, error] = std::from_chars(number.data(), end, result.device);
    if (error != std::errc() || last != end || result.device < 0) return std::nullopt;
    name = name.substr(0, at);
  }
  if (name.empty()) return result;
  if (name.front() != ':' || name.size() == 1) return std::nullopt;
  result.kernel = name.substr(1);
  return result;
}

}  // namespace blindfuse
