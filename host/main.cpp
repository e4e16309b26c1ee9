// blindfuse, the operator's program: plan, build, inspect, serve, keygen, api-key, self-test.
#include <CLI/CLI.hpp>
#include <string>

#include "host/commands/commands.h"
#include "src/program/program.h"

namespace {

void add_commands(CLI::App& program) {
  blindfuse::add_plan_command(program);
  blindfuse::add_build_command(program);
  blindfuse::add_inspect_command(program);
  blindfuse::add_serve_command(program);
  blindfuse::add_keygen_command(program);
  blindfuse::add_api_key_command(program);
  blindfuse::add_self_test_command(program);
  program.footer(
      "First steps:\n"
      "  blindfuse build words.tsv --output words.blindfuse  KEY<tab>VALUE lines\n"
      "  blindfuse serve words.blindfuse                     http://127.0.0.1:8080\n"
      "  blindfuse-client get http://127.0.0.1:8080 KEY\n\n" +
      program.get_footer());
}

}  // namespace

int main(int argc, char** argv) {
  return blindfuse::run_commands(
      "blindfuse",
      "Serve private look-ups: clients ask a key-value database for a key, and the server does not "
      "learn which.",
      add_commands,
      [] {
        return "commit " + std::string(blindfuse::kSourceCommit) + "\n" + blindfuse::built_in();
      },
      argc, argv);
}
