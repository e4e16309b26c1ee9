// blindfuse keygen: a key to sign databases with.
#pragma once

namespace CLI {
class App;
}

namespace blindfuse {

void add_keygen_command(CLI::App& program);

}  // namespace blindfuse
