// `blindfuse serve`: serves a database directory on the network.
#pragma once

namespace CLI {
class App;
}

namespace blindfuse {

void add_serve_command(CLI::App& program);

}  // namespace blindfuse
