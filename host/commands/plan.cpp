#include "host/commands/commands.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "host/commands/layout_options.h"
#include "host/commands/plan_report.h"
#include "host/publish/database_builder.h"
#include "host/publish/layout_checks.h"
#include "src/base/errors.h"
#include "src/program/command_line.h"
#include "src/program/log.h"

namespace blindfuse {
namespace {

struct PlanOptions {
  InputChoices input;
  std::optional<uint64_t> key_count;
  std::optional<uint32_t> value_bytes;
  bool fixed_values = false;
  LayoutOptions layout;
  bool json = false;
};

// The sizes are given, or counted.
void check_sizes(const PlanOptions& options) {
  const bool has_files = !options.input.files.empty();
  if (!has_files && !(options.key_count && options.value_bytes)) {
    const std::string missing = options.key_count     ? "--value-bytes"
                                : options.value_bytes ? "--keys"
                                                      : "--keys and --value-bytes";
    throw UsageError("missing " + missing +
                     "; or give files of pairs, whose keys and values plan counts");
  }
  if (!has_files) return;
  const char* given = options.key_count      ? "--keys"
                      : options.value_bytes  ? "--value-bytes"
                      : options.fixed_values ? "--fixed-values"
                                             : nullptr;
  if (given == nullptr) return;
  throw UsageError(std::string(given) +
                   " contradicts a file of pairs, whose keys and values are counted; leave the one "
                   "or the other out");
}

Survey given_sizes(const PlanOptions& options) {
  if (options.layout.index && *options.value_bytes == 0) {
    throw UsageError("an index database of values without bytes holds nothing");
  }
  Survey survey;
  survey.key_count = *options.key_count;
  survey.longest_value = *options.value_bytes;
  // Values are assumed to differ in length, which costs a length field, unless an option says
  // otherwise.
  const bool fixed = options.fixed_values || survey.longest_value == 0;
  survey.shortest_value = fixed ? survey.longest_value : survey.longest_value - 1;
  return survey;
}

void run_plan(const PlanOptions& options) {
  check_sizes(options);
  BuildOptions build;
  options.layout.apply_to(build);
  build.input = options.input.options(options.layout.index);
  PlanQuestion question;
  if (options.input.files.empty()) {
    const Survey survey = given_sizes(options);
    question.request = plan_request(build, survey);
    question.longest_value = survey.longest_value;
  } else {
    const DryRun found = dry_run(options.input.open(options.layout.index), std::nullopt, build);
    question.request = found.request;
    question.longest_value = found.survey.longest_value;
    if (found.truncated_values > 0) log_info("values cut: {}", found.truncated_values);
  }
  question.levels_fixed = options.layout.levels.has_value();
  report_plan(question, options.json);
}

}  // namespace

void add_plan_command(CLI::App& program) {
  auto options = std::make_shared<PlanOptions>();
  CLI::App* command = program.add_subcommand(
      "plan",
      "Recommend a layout for a number of keys and a length of values, or for files of pairs, and "
      "show what it costs and what others there are.");
  command->footer(
      "Examples:\n  blindfuse plan --keys 1000000 --value-bytes 256\n"
      "  blindfuse plan words.tsv --lookups-per-client 1000");
  options->input.add_files_to(*command);
  command->option_defaults()->group("Database");
  command
      ->add_option("--keys", options->key_count,
                   "Number of keys, such as 250000 or 1M (k, M and G)")
      ->type_name("COUNT")
      ->transform(count_units())
      ->check(CLI::Range(uint64_t{1}, kKeyCountMax));
  command
      ->add_option("--value-bytes", options->value_bytes, "Length of the longest value, in bytes")
      ->type_name("BYTES")
      ->transform(byte_units())
      ->check(CLI::Range(0u, kValueBytesMax));
  command->add_flag("--fixed-values", options->fixed_values, "All values have exactly this length");
  options->input.add_to(*command);
  options->layout.add_to(*command);
  command->add_flag("--json", options->json, "Print the report as JSON");
  command->callback([options] { run_plan(*options); });
}

}  // namespace blindfuse
