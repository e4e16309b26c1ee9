#include "host/commands/commands.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "host/publish/signing_key.h"
#include "src/base/hex.h"
#include "src/system/random.h"

namespace blindfuse {

void add_keygen_command(CLI::App& program) {
  auto file = std::make_shared<std::string>();
  CLI::App* command = program.add_subcommand(
      "keygen",
      "Make a key to sign databases with. Writes the private key to a new file for build --sign, "
      "and prints the public key for clients.");
  command->footer(
      "Example:\n  blindfuse keygen words.key\n"
      "  blindfuse build words.tsv --output words.blindfuse --sign words.key");
  command->add_option("file", *file, "File of the private key; must not exist")->required();
  command->callback([file] {
    const SigningKey key = SigningKey::make(fill_from_system);
    key.write(*file);
    std::puts(encode_hex(key.public_key()).c_str());
  });
}

}  // namespace blindfuse
