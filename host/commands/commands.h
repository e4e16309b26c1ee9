// The commands of the operator's program. Each is added to the program, and runs as its callback.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace blindfuse {

void add_plan_command(CLI::App& program);
void add_build_command(CLI::App& program);
void add_inspect_command(CLI::App& program);
void add_serve_command(CLI::App& program);
void add_keygen_command(CLI::App& program);
void add_api_key_command(CLI::App& program);
void add_self_test_command(CLI::App& program);

// The lines that `blindfuse --version` prints after the version: whether the page and the CUDA
// engine are in this program, and the engines that it has for this processor, a line each.
std::string built_in();

}  // namespace blindfuse
