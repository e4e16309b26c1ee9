#include "host/commands/plan.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "host/commands/layout_options.h"
#include "host/commands/layout_table.h"
#include "host/publish/planner.h"
#include "src/base/errors.h"
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
    throw UsageError("an index database of values without bytes holds nothing");
  }
  request.arity = options.layout.arity.value_or(3);
  request.mode = options.layout.mode();
  request.lwe = options.layout.lwe();
  request.lookups_per_client = options.layout.lookups_per_client;
  request.shard_count = options.layout.shard_count;
  request.query_bits = options.layout.query_bits;
  request.response_bits = options.layout.response_bits;
  request.hint_bits = options.layout.hint_bits;
  request.levels = options.layout.levels.value_or(1);
  request.short_key = options.layout.short_key;
  return request;
}

void print_json(const std::vector<std::vector<Plan>>& modes, const Plan& best, uint64_t lookups) {
  nlohmann::json list = nlohmann::json::array();
  for (const std::vector<Plan>& plans : modes) {
    for (const Plan& plan : plans) {
      nlohmann::json item = layout_json(plan.layout);
      item["sync_bytes"] = plan.sync_bytes;
      item["total_bytes"] = plan.total_bytes;
      item["chosen"] = &plan == &best;
      list.push_back(std::move(item));
    }
  }
  std::puts(nlohmann::json{{"lookups_per_client", lookups}, {"layouts", list}}.dump(2).c_str());
}

std::string heading(const Layout& layout) {
  return std::string(mode_name(layout.mode())) + " mode, " + std::string(layout.lwe->name) +
         (layout.mode() == Mode::kHint ? ": clients download the hint once an epoch"
                                       : ": no hint, but queries carry a packing key of 24 KiB");
}

// Which one `build` would choose, and why.
std::string choice(const std::vector<std::vector<Plan>>& modes, const Plan& best,
                   uint64_t lookups) {
  const std::string with = "with " + counted(lookups, "look-up") + " a client ";
  const std::string total = human_bytes(best.total_bytes);
  if (modes.size() == 1) {
    return "* is what `build` would choose: " + with + total + " in all";
  }
  const bool packed = best.layout.mode() == Mode::kPacked;
  const Plan& other = cheapest(packed ? modes.front() : modes.back());
  return "* is the best of its mode. `build` would choose the " +
         std::string(mode_name(best.layout.mode())) + " mode's:\n  " + with + "it takes " + total +
         " in all, and the " + std::string(mode_name(other.layout.mode())) + " mode's " +
         human_bytes(other.total_bytes);
}

// What the server's memory has to do with it.
void print_packing(const Layout& best_packed) {
  std::printf(
      "  In the packed mode the server keeps %s of packing tables and %s of matrix;\n"
      "  more shards make them larger, so that the best is the one with the fewest packs of\n"
      "  those with up to %.0f %% more bytes than the fewest.\n",
      human_bytes(best_packed.packing_table_bytes()).c_str(),
      human_bytes(best_packed.matrix_bytes()).c_str(), 100.0 * (kBytesForFewerPacks - 1.0));
}

void print_text(const PlanOptions& options, const std::vector<std::vector<Plan>>& modes,
                const Plan& best, uint64_t lookups) {
  std::printf("%s, values of up to %s, %s a client and epoch\n",
              counted(options.key_count, "key").c_str(),
              counted(options.value_bytes, "byte").c_str(), counted(lookups, "look-up").c_str());
  for (const std::vector<Plan>& plans : modes) {
    const Plan& of_mode = cheapest(plans);
    std::printf("\n%s\n%s", heading(of_mode.layout).c_str(),
                plan_table(plans, of_mode, 11).c_str());
  }
  std::printf("\n%s\n  (%s of tables and %s once an epoch, %s up and %s down a look-up).\n",
              choice(modes, best, lookups).c_str(), human_bytes(best.sync_bytes).c_str(),
              best.layout.mode() == Mode::kHint ? "hint" : "masks",
              human_bytes(best.layout.query_bytes()).c_str(),
              human_bytes(best.layout.response_bytes()).c_str());
  std::printf("  More shards make queries smaller, and responses and hint or masks larger.\n");
  const Layout& last = cheapest(modes.back()).layout;
  if (last.mode() == Mode::kPacked) print_packing(last);
  if (options.layout.mode()) return;
  std::printf(
      "  Packed layouts whose packing tables take more than the matrix, and more than %.0f MiB,\n"
      "  are left out here; --mode packed shows them.\n",
      static_cast<double>(kPackingBytesUnasked) / (1 << 20));
}

void run_plan(const PlanOptions& options) {
  const PlanRequest request = request_of(options);
  const std::vector<std::vector<Plan>> modes = plan_modes(request);
  const Plan& best = cheapest(modes);
  if (options.json) {
    print_json(modes, best, request.lookups_per_client);
  } else {
    print_text(options, modes, best, request.lookups_per_client);
  }
}

}  // namespace

void add_plan_command(CLI::App& program) {
  auto options = std::make_shared<PlanOptions>();
  CLI::App* command = program.add_subcommand(
      "plan", "Show the layouts for a number of keys and a length of values, and what each costs.");
  command->footer("Example:\n  blindfuse plan --keys 1000000 --value-bytes 256");
  command->option_defaults()->group("Database");
  command
      ->add_option("--keys", options->key_count,
                   "Number of keys, such as 250000 or 1M (k, M and G)")
      ->required()
      ->transform(
          CLI::AsNumberWithUnit(
              std::map<std::string, uint64_t>{{"k", 1'000}, {"M", 1'000'000}, {"G", 1'000'000'000}},
              CLI::AsNumberWithUnit::UNIT_OPTIONAL)
              .description(""))
      ->check(CLI::Range(uint64_t{1}, kKeyCountMax));
  command
      ->add_option("--value-bytes", options->value_bytes, "Length of the longest value, in bytes")
      ->required()
      ->check(CLI::Range(0u, kValueBytesMax));
  command->add_flag("--fixed-values", options->fixed_values, "All values have exactly this length");
  options->layout.add_to(*command);
  command->add_flag("--json", options->json, "Print the report as JSON");
  command->callback([options] { run_plan(*options); });
}

}  // namespace blindfuse
