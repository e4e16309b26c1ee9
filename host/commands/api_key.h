// `blindfuse api-key`: keys for a server that asks for them.
#pragma once

namespace CLI {
class App;
}

namespace blindfuse {

void add_api_key_command(CLI::App& program);

}  // namespace blindfuse
