// `blindfuse build`: makes a database directory from the operator's files.
#pragma once

namespace CLI {
class App;
}

namespace blindfuse {

void add_build_command(CLI::App& program);

}  // namespace blindfuse
