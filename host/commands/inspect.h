// `blindfuse inspect`: shows the contents of a database directory, and checks them.
#pragma once

namespace CLI {
class App;
}

namespace blindfuse {

void add_inspect_command(CLI::App& program);

}  // namespace blindfuse
