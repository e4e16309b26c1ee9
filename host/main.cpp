// blindfuse, the operator's program: plan, build, inspect, serve, api-key.
#include <CLI/CLI.hpp>

#include "host/commands/api_key.h"
#include "host/commands/build.h"
#include "host/commands/inspect.h"
#include "host/commands/plan.h"
#include "host/commands/serve.h"
#include "src/program/program.h"

int main(int argc, char** argv) {
  CLI::App program(
      "Serve private look-ups: clients ask a key-value database for a key, and the server does not "
      "learn which.",
      "blindfuse");
  program.require_subcommand(1);
  blindfuse::add_plan_command(program);
  blindfuse::add_build_command(program);
  blindfuse::add_inspect_command(program);
  blindfuse::add_serve_command(program);
  blindfuse::add_api_key_command(program);
  return blindfuse::run_program(program, argc, argv);
}
