#include "host/commands/batch_report.h"

#include <algorithm>
#include <cstdio>
#include <optional>

#include "host/commands/layout_table.h"
#include "host/publish/batch_comparison.h"
#include "host/publish/left_out_keys.h"
#include "host/publish/plan_cost.h"
#include "host/publish/plan_request.h"
#include "host/system/memory.h"
#include "src/base/errors.h"
#include "src/program/amount.h"
#include "src/program/log.h"

namespace blindfuse {
namespace {

// The lower one of what was measured and what is proven.
std::optional<double> lowest_bound(const BatchCode& code) {
  const auto measured = left_out_bound(code), proven = proven_left_out_bound(code);
  if (measured && proven) return std::min(*measured, *proven);
  return measured ? measured : proven;
}

}  // namespace

BatchReport::BatchReport(const PlanRequest& request, const Plan& chosen, const CoreRates& rates)
    : lookups_(request.lookups_per_client),
      rates_(rates),
      compared_(batch_plans_worth_comparing(request, chosen)),
      one_key_(best_for_one_key(request)) {}

nlohmann::json BatchReport::item(const Plan& plan) const {
  nlohmann::json json = plan_json(plan, rates_, lookups_);
  json["options"] = options_for(plan.layout);
  json["bytes_per_key"] = bytes_per_key(plan.layout);
  if (one_key_) json["passes_per_key"] = passes_per_key(plan.layout, one_key_->layout);
  return json;
}

nlohmann::json BatchReport::summary() const {
  const auto bound = lowest_bound(*chosen().batch);
  nlohmann::json report = {
      {"keys_per_request", chosen().batch->keys_per_request},
      {"bucket_count", chosen().batch->bucket_count},
      {"single_key_bytes", request_bytes(chosen())},
      {"left_out_bound", bound ? nlohmann::json(*bound) : nlohmann::json()},
  };
  if (!one_key_) return report;
  const auto keys = keys_that_pay(chosen(), one_key_->layout);
  report["keys_that_pay"] = keys ? nlohmann::json(*keys) : nlohmann::json();
  report["one_key"] = item(*one_key_);
  return report;
}

std::string BatchReport::row(char mark, const Plan& plan) const {
  const Layout& layout = plan.layout;
  const PlanCost cost = plan_cost(plan, rates_, lookups_);
  const std::string keys = layout.batch ? std::to_string(layout.batch->keys_per_request) + " (" +
                                              std::to_string(layout.bucket_count()) + ")"
                                        : "1";
  char passes[32] = "";
  if (one_key_) {
    std::snprintf(passes, sizeof passes, "%.2g", passes_per_key(layout, one_key_->layout));
  }
  char line[300];
  std::snprintf(
      line, sizeof line, "%c %14s %9u %9.1f %13s %10s %10s %10s %10.1f %11.1f %9.2f  %s\n", mark,
      keys.c_str(), layout.row_count, bytes_per_key(layout) * 1e-3, passes,
      human_bytes(layout.matrix_bytes()).c_str(), human_bytes(layout.packing_table_bytes()).c_str(),
      human_bytes(cost.server_bytes).c_str(), cost.alone_seconds * 1e3,
      cost.lookups_per_core_second(), cost.dollars / static_cast<double>(lookups_) * 1e6,
      options_for(layout).c_str());
  return line;
}

std::string BatchReport::table() const {
  char line[300];
  std::snprintf(line, sizeof line, "  %14s %9s %9s %13s %10s %10s %10s %10s %11s %9s  %s\n",
                "keys (buckets)", "rows", "kB a key", "passes a key", "matrix", "tables", "server",
                "ms alone", "keys/s core", "$ per 1M", "options");
  std::string table = line;
  if (one_key_) table += row(' ', *one_key_);
  for (const Plan& plan : compared_) table += row(&plan == &compared_.front() ? '*' : ' ', plan);
  return table;
}

std::string BatchReport::single_key() const {
  std::string text = "  A request for one key costs as much as a full one: " +
                     human_bytes(chosen().query_bytes()) + " up and " +
                     human_bytes(chosen().response_bytes()) + " down.\n";
  if (!one_key_) return text;
  if (const auto keys = keys_that_pay(chosen(), one_key_->layout)) {
    return text + "  From " + counted(*keys, "key") +
           " on, a request has fewer bytes than as many look-ups of the layout for one key a "
           "request.\n";
  }
  return text +
         "  Even a full request has more bytes than as many look-ups of the layout for one key a "
         "request.\n";
}

std::string BatchReport::left_out() const {
  const std::string code = std::to_string(chosen().batch->keys_per_request) + " keys in " +
                           std::to_string(chosen().bucket_count()) + " buckets";
  const auto bound = lowest_bound(*chosen().batch);
  if (!bound) {
    return "  How often a full request leaves a key out, because other keys have its buckets, has "
           "not been\n  measured for " +
           code + ".\n";
  }
  if (*bound == 0) return "  A request of " + code + " never leaves a key out.\n";
  const bool is_proven = bound == proven_left_out_bound(*chosen().batch);
  char number[32];
  std::snprintf(number, sizeof number, "%.1e", *bound);
  return "  A full request of " + code +
         " leaves a key out, because other keys have its buckets,\n  with a probability of at "
         "most " +
         number +
         (is_proven ? " (proven for keys that no one chose).\n"
                    : " (measured, with 95 % confidence).\n");
}

std::string BatchReport::text() const {
  const PlanCost cost = plan_cost(compared_.front(), rates_, lookups_);
  char batch[16];
  std::snprintf(batch, sizeof batch, "%zu", kFullBatch);
  return "\n* and other layouts, with full requests, next to the one for one key a request:\n" +
         table() +
         "  rows: of a bucket; kB a key: up and down; passes a key: over the matrix of the layout "
         "for one key;\n"
         "  server: memory; ms alone: of one core, for a request while no other waits; keys/s "
         "core: keys a\n"
         "  second of one core in batches of " +
         batch + " requests. Both are of the CPU's engine.\n" + single_key() + left_out() +
         "  The server keeps " + human_bytes(cost.server_bytes) + " in memory: matrix " +
         human_bytes(chosen().matrix_bytes()) + ", packing tables " +
         human_bytes(chosen().packing_table_bytes()) + ", masks " +
         human_bytes(chosen().hint_bytes()) + ".\n  Each request that waits there takes " +
         human_bytes(sizeof(uint32_t) * chosen().query_word_count()) +
         " more; serve's --queue-max and --batch-max say how\n  many may.\n";
}

void warn_of_memory(const Layout& layout) {
  const uint64_t bytes = layout.matrix_bytes() + layout.packing_table_bytes() + layout.hint_bytes();
  try {
    check_memory("a server of this layout", bytes);
  } catch (const ResourceError& error) {
    log_warning("{}", error.what());
  }
}

}  // namespace blindfuse
