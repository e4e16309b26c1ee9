// `blindfuse api-key`: makes keys for a server that requires them.
#pragma once

namespace CLI {
class App;
}

namespace blindfuse {

void add_api_key_command(CLI::App& program);

}  // namespace blindfuse
