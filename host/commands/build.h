// `blindfuse build`: from the operator's files to a database directory.
#pragma once

namespace CLI {
class App;
}

namespace blindfuse {

void add_build_command(CLI::App& program);

}  // namespace blindfuse
