// `blindfuse inspect`: what is in a database directory, and whether it is all right.
#pragma once

namespace CLI {
class App;
}

namespace blindfuse {

void add_inspect_command(CLI::App& program);

}  // namespace blindfuse
