// `blindfuse self-test`: whether a GPU computes what the CPU does.
#pragma once

namespace CLI {
class App;
}

namespace blindfuse {

void add_self_test_command(CLI::App& program);

}  // namespace blindfuse
