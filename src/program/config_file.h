// Reads options from a file: one `name = value` a line, as on the command line but without the
// dashes.
//
// CLI11 parses the file. The options are applied here, because CLI11 2.1 does so for the top
// command alone, and lets the file override the environment.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace blindfuse {

// Adds --config to this command. The command line and the environment override the file. An option
// of the file that the command does not have, or a wrong value, is refused in the same way as on
// the command line, and so are sections and open quotes. A file that cannot be read is an
// InputError. Required options have to be checked after that: CLI11 would do it before.
void add_config_option(CLI::App& command);

}  // namespace blindfuse
