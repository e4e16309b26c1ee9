// `blindfuse self-test`: checks that a GPU computes the same results as the CPU.
#pragma once

namespace CLI {
class App;
}

namespace blindfuse {

void add_self_test_command(CLI::App& program);

}  // namespace blindfuse
