// `blindfuse keygen`: makes a key that signs databases.
#pragma once

namespace CLI {
class App;
}

namespace blindfuse {

void add_keygen_command(CLI::App& program);

}  // namespace blindfuse
