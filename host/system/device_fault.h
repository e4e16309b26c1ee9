// The file that a process leaves whose GPU computed a wrong result, hung or was lost. While it is
// there, --engine auto takes the CPU: a fault that the self-test cannot see would end every start.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace blindfuse {

// gpu-fault in $STATE_DIRECTORY, which systemd sets; without that in $XDG_STATE_HOME/blindfuse or
// ~/.local/state/blindfuse. Empty if none of these is set.
std::filesystem::path device_fault_file();

// The text of the file; nothing if there is none. A file that cannot be read counts as there.
std::optional<std::string> read_device_fault();

// Writes the time and `what`, which names the device, to the file. Takes a second at most, since
// the process is about to end. Returns the end of a sentence for people that says what the next
// start does.
std::string leave_device_fault(const std::string& what);

}  // namespace blindfuse
