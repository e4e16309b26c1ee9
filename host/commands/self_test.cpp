#include "host/commands/commands.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "host/engines/engine_factory.h"
#include "host/engines/self_test.h"
#include "src/base/errors.h"
#include "src/program/program.h"

namespace blindfuse {
namespace {

using Outcome = SelfTestResult::Outcome;

struct SelfTestCommand {
  std::string engine = "cuda";
  unsigned seconds_per_check = 20;
  unsigned seconds_to_start = static_cast<unsigned>(kDeviceStartLimit.count());
  std::vector<std::string> without;
  bool json = false;
  bool is_worker = false;
  size_t first = 0;
};

void print_json(const SelfTestResult& result) {
  nlohmann::ordered_json checks = nlohmann::ordered_json::array();
  for (const auto& check : result.checks) {
    checks.push_back({{"kernel", check.kernel},
                      {"check", check.name},
                      {"outcome", name_of(check.outcome)},
                      {"why", check.why}});
  }
  const nlohmann::ordered_json all = {
      {"passed", result.passed()}, {"device", result.device}, {"checks", checks}};
  std::printf("%s\n",
              all.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
}

void print_text(const SelfTestResult& result) {
  std::printf("%s\n\n%-10s%-22s%s\n", result.device.c_str(), "kernel", "check", "outcome");
  size_t failed = 0;
  for (const auto& check : result.checks) {
    if (check.outcome != Outcome::kPassed) ++failed;
    std::printf("%-10s%-22s%s%s\n", check.kernel.c_str(), check.name.c_str(),
                std::string(name_of(check.outcome)).c_str(),
                check.why.empty() ? "" : (": " + check.why).c_str());
  }
  if (failed == 0) {
    std::printf("\nall %zu checks passed\n", result.checks.size());
  } else {
    std::printf(
        "\n%zu of %zu checks did not pass: use --engine cuda:KERNEL with another kernel, or cpu\n",
        failed, result.checks.size());
  }
}

void run(const SelfTestCommand& command) {
  const auto name = parse_cuda_name(command.engine);
  if (!name || !name->kernel.empty()) {
    throw UsageError("--engine " + command.engine +
                     " has no self-test; it is cuda, or cuda@DEVICE");
  }
  if (command.is_worker) return run_self_test_worker(name->device, command.first, command.without);
  const SelfTestResult result =
      run_self_test({.device = name->device,
                     .without = command.without,
                     .patience = std::chrono::seconds(command.seconds_per_check),
                     .start_patience = std::chrono::seconds(command.seconds_to_start)});
  if (!result.why_no_device.empty()) {
    throw ResourceError("the engine cuda cannot run: " + result.why_no_device);
  }
  command.json ? print_json(result) : print_text(result);
  if (!result.passed()) throw ExitStatus{kExitFailed};
}

}  // namespace

void add_self_test_command(CLI::App& program) {
  auto options = std::make_shared<SelfTestCommand>();
  CLI::App* command = program.add_subcommand(
      "self-test", "Check that each kernel of a GPU computes the same as the CPU.");
  command->footer("Example:\n  blindfuse self-test --engine cuda@1");
  command->add_option("--engine", options->engine, "Which GPU: cuda, or cuda@DEVICE")
      ->type_name("ENGINE")
      ->capture_default_str();
  command
      ->add_option("--seconds-per-check", options->seconds_per_check,
                   "How long a check may take, in seconds; after that it counts as hung")
      ->check(CLI::Range(1u, 86'400u))
      ->capture_default_str();
  command
      ->add_option("--seconds-to-start", options->seconds_to_start,
                   "How long the driver may take to start, and to load or compile the code of a "
                   "check, in seconds; after that it counts as hung")
      ->check(CLI::Range(1u, 86'400u))
      ->capture_default_str();
  command
      ->add_option("--without", options->without,
                   "A kernel to leave out: dp4a, mma, wgmma, wgmma-tma, packing or "
                   "tables. May be given several times")
      ->type_name("KERNEL");
  command->add_flag("--json", options->json, "Print the report as JSON");
  command->add_flag("--worker", options->is_worker)->group("");
  command->add_option("--first", options->first)->group("");
  command->callback([options] { run(*options); });
}

}  // namespace blindfuse
