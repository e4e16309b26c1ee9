#include "host/commands/plan.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "host/build/planner.h"
#include "host/commands/layout_options.h"
#include "host/commands/layout_table.h"
#include "src/errors.h"
#include "src/program/amount.h"

namespace blindfuse {
namespace {

struct PlanOptions {
  uint64_t key_count = 0;
  uint32_t value_bytes = 0;
  bool fixed_values = false;
  LayoutOptions layout;
  bool json = false;
};

PlanRequest request_of(const PlanOptions& options) {
  PlanRequest request;
  request.kind = options.layout.index ? DatabaseKind::kIndex : DatabaseKind::kKeyword;
  request.key_count = options.key_count;
  // Unless told otherwise, values are taken to differ in length, which costs a length field.
  const bool fixed = options.fixed_values || options.value_bytes == 0;
  request.record =
      record_format_for(options.layout.index ? 0 : options.layout.digest_bytes.value_or(8),
                        fixed ? options.value_bytes : options.value_bytes - 1, options.value_bytes);
  if (request.record.record_bytes() == 0) {
    throw Misuse("an index database of values without bytes holds nothing");
  }
  request.arity = options.layout.arity.value_or(3);
  request.lwe = options.layout.lwe();
  request.lookups_per_client = options.layout.lookups_per_client;
  request.shard_count = options.layout.shard_count;
  request.query_bits = options.layout.query_bits;
  request.response_bits = options.layout.response_bits;
  request.hint_bits = options.layout.hint_bits;
  return request;
}

void print_json(const std::vector<Plan>& plans, const Plan& best, uint64_t lookups) {
  nlohmann::json list = nlohmann::json::array();
  for (const Plan& plan : plans) {
    nlohmann::json item = layout_json(plan.layout);
    item["sync_bytes"] = plan.sync_bytes;
    item["total_bytes"] = plan.total_bytes;
    item["chosen"] = &plan == &best;
    list.push_back(std::move(item));
  }
  std::puts(nlohmann::json{{"lookups_per_client", lookups}, {"layouts", list}}.dump(2).c_str());
}

void run_plan(const PlanOptions& options) {
  const PlanRequest request = request_of(options);
  const std::vector<Plan> plans = plan_layouts(request);
  const Plan& best = cheapest(plans);
  const uint64_t lookups = request.lookups_per_client;
  if (options.json) return print_json(plans, best, lookups);
  std::printf("%s, values of up to %s, %s, %s a client and epoch\n\n%s\n",
              counted(request.key_count, "key").c_str(),
              counted(options.value_bytes, "byte").c_str(), std::string(request.lwe->name).c_str(),
              counted(lookups, "look-up").c_str(), plan_table(plans, best, 11).c_str());
  std::printf(
      "* is what `build` would choose: with %s a client the fewest bytes in all, %s\n"
      "  (%s of shard table and hint once an epoch, %s up and %s down a look-up).\n"
      "  More shards make queries smaller and the hint larger.\n",
      counted(lookups, "look-up").c_str(), human_bytes(best.total_bytes).c_str(),
      human_bytes(best.sync_bytes).c_str(), human_bytes(best.layout.query_bytes()).c_str(),
      human_bytes(best.layout.response_bytes()).c_str());
}

}  // namespace

void add_plan_command(CLI::App& program) {
  auto options = std::make_shared<PlanOptions>();
  CLI::App* command = program.add_subcommand(
      "plan", "Show the layouts for a number of keys and a size of value, and what each costs");
  command->add_option("--keys", options->key_count, "Number of keys")
      ->required()
      ->check(CLI::Range(uint64_t{1}, kKeyCountMax));
  command->add_option("--value-bytes", options->value_bytes, "Bytes of the longest value")
      ->required()
      ->check(CLI::Range(0u, kValueBytesMax));
  command->add_flag("--fixed-values", options->fixed_values,
                    "All values have exactly that many bytes");
  options->layout.add_to(*command);
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options] { run_plan(*options); });
}

}  // namespace blindfuse
