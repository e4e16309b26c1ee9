// Options from a file: `name = value`, a line each, as on the command line but without the dashes.
//
// CLI11 parses it. Applying it is done here because CLI11 2.1 does so for the top command alone,
// and lets the file win over the environment.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace blindfuse {

// Adds --config to this command. What the command line or the environment says counts more than the
// file. An option of the file that the command does not have, or a value that is wrong, is refused
// like one on the command line, and so are sections and open quotes; a file that cannot be read is
// InputError. An option that must be there has to be checked after that: CLI11 does it before.
void add_config_option(CLI::App& command);

}  // namespace blindfuse
