#include "host/system/processor_name.h"

#include <fstream>
#include <string_view>

namespace blindfuse {
namespace {

// The text after the colon of a line such as "model name\t: AMD EPYC 9R45". Empty for another name.
std::string value_of(std::string_view line, std::string_view name) {
  if (!line.starts_with(name)) return "";
  const size_t colon = line.find_first_not_of(" \t", name.size());
  if (colon == std::string_view::npos || line[colon] != ':') return "";
  const size_t first = line.find_first_not_of(" \t", colon + 1);
  if (first == std::string_view::npos) return "";
  return std::string(line.substr(first, line.find_last_not_of(" \t\r") + 1 - first));
}

}  // namespace

std::string processor_name(const std::filesystem::path& root) {
  std::ifstream file(root / "proc" / "cpuinfo");
  std::string implementer, part;
  for (std::string line; std::getline(file, line);) {
    if (std::string name = value_of(line, "model name"); !name.empty()) return name;
    if (implementer.empty()) implementer = value_of(line, "CPU implementer");
    if (part.empty()) part = value_of(line, "CPU part");
  }
  if (implementer.empty() || part.empty()) return "unknown";
  return "CPU implementer " + implementer + ", part " + part;
}

}  // namespace blindfuse
