// The name of this machine's processor, to tell machines apart.
#pragma once

#include <filesystem>
#include <string>

namespace blindfuse {

// The model's name as Linux has it (proc/cpuinfo): "AMD EPYC 9R45". Where it has numbers only, as
// on ARM: "CPU implementer 0x41, part 0xd4f". "unknown" if there is neither. root: the folder that
// contains proc, which is another one in tests.
std::string processor_name(const std::filesystem::path& root = "/");

}  // namespace blindfuse
