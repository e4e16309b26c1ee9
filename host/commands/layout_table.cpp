#include "host/commands/layout_table.h"

#include <algorithm>
#include <cstdio>

#include "src/program/amount.h"

namespace blindfuse {

nlohmann::json layout_json(const Layout& layout) {
  nlohmann::json json = {
      {"kind", layout.kind == DatabaseKind::kKeyword ? "keyword" : "index"},
      {"mode", mode_name(layout.mode())},
      {"lwe", layout.lwe->name},
      {"assumption", layout.lwe->assumption},
      {"security_bits", layout.lwe->security_bits},
      {"key_count", layout.key_count},
      {"shard_count", layout.shard_count},
      {"row_count", layout.row_count},
      {"column_count", layout.column_count()},
      {"arity", layout.arity},
      {"record_bytes", layout.record_bytes()},
      {"digest_bytes", layout.record.digest_bytes},
      {"length_bytes", layout.record.length_bytes},
      {"value_bytes", layout.record.value_bytes},
      {"query_bits", layout.query_bits},
      {"response_bits", layout.response_bits},
      {"hint_bits", layout.hint_bits},
      {"query_bytes", layout.query_bytes()},
      {"response_bytes", layout.response_bytes()},
      {"hint_bytes", layout.hint_bytes()},
      {"matrix_bytes", layout.matrix_bytes()},
      {"pack_count", layout.pack_count()},
      {"packing_table_bytes", layout.packing_table_bytes()},
      {"log2_failure", layout.log2_failure()},
  };
  if (layout.second) {
    json["levels"] = 2;
    json["shards_a_group"] = layout.second->group_shards;
    json["query2_bits"] = layout.second->query_bits;
    json["mask2_bits"] = layout.second->mask_bits;
    json["response2_bits"] = layout.second->response_bits;
    json["short_key_order"] = layout.second->key_order;
  }
  if (layout.batch) {
    json["keys_per_request"] = layout.batch->keys_per_request;
    json["bucket_count"] = layout.batch->bucket_count;
    json["record_count"] = layout.record_count();
  }
  return json;
}

std::string request_name(const Layout& layout) {
  if (!layout.batch) return "look-up";
  return "request for up to " + std::to_string(layout.batch->keys_per_request) + " keys";
}

std::string security_line(const LweParams& set) {
  const char* const other = set.mode == Mode::kPacked
                                ? "--mode hint rests on LWE alone"
                                : "--mode packed needs no hint, and rests on ring LWE";
  return std::string(mode_name(set.mode)) + " mode: secrecy rests on " +
         std::string(set.assumption) + " (" + std::string(set.name) + ", an estimated " +
         std::to_string(set.security_bits) + " bits); " + other;
}

std::string plan_table(const std::vector<Plan>& plans, const Plan& best, size_t rows) {
  const size_t at = static_cast<size_t>(&best - plans.data());
  const size_t first =
      std::min(at - std::min(at, rows / 2), plans.size() - std::min(plans.size(), rows));
  const bool packed = best.layout.mode() == Mode::kPacked;
  std::string table = "  shards       rows   bits q/r/h      query   response";
  table += packed ? "      masks     matrix    packing" : "       hint     matrix";
  table += "  log2 fail      total\n";
  char line[200];
  for (size_t i = first; i < std::min(plans.size(), first + rows); ++i) {
    const Layout& layout = plans[i].layout;
    const std::string packing = packed ? human_bytes(layout.packing_table_bytes()) : "";
    std::snprintf(
        line, sizeof line, "%c %6u %10u     %2u/%2u/%2u %10s %10s %10s %10s%*s %10.1f %10s\n",
        i == at ? '*' : ' ', layout.shard_count, layout.row_count, layout.query_bits,
        layout.response_bits, layout.hint_bits, human_bytes(layout.query_bytes()).c_str(),
        human_bytes(layout.response_bytes()).c_str(), human_bytes(layout.hint_bytes()).c_str(),
        human_bytes(layout.matrix_bytes()).c_str(), packed ? 11 : 0, packing.c_str(),
        layout.log2_failure(), human_bytes(plans[i].total_bytes).c_str());
    table += line;
  }
  return table;
}

std::string kind_name(const LayoutKind& kind) {
  std::string name(mode_name(kind.mode));
  if (kind.levels == 2) name += ", 2 levels";
  if (kind.short_key) name += ", short key";
  if (kind.batch) name += ", " + std::to_string(kind.batch->keys_per_request) + " keys a request";
  return name;
}

std::string options_for(const Layout& layout) {
  const LayoutKind kind = kind_of(layout);
  std::string options = "--mode " + std::string(mode_name(kind.mode));
  if (layout.lwe != &default_lwe_params(kind.mode)) {
    options = "--params " + std::string(layout.lwe->name);
  }
  if (kind.batch) {
    options += " --keys-per-request " + std::to_string(kind.batch->keys_per_request);
  } else if (kind.mode == Mode::kPacked) {
    options += " --levels " + std::to_string(kind.levels);
  }
  if (kind.short_key) options += " --short-key";
  return options + " --shards " + std::to_string(layout.shard_count);
}

nlohmann::json plan_json(const Plan& plan, const CoreRates& rates, uint64_t lookups) {
  const PlanCost cost = plan_cost(plan, rates, lookups);
  nlohmann::json json = layout_json(plan.layout);
  json["sync_bytes"] = plan.sync_bytes;
  json["total_bytes"] = plan.total_bytes;
  json["server_bytes"] = cost.server_bytes;
  json["alone_milliseconds"] = cost.alone_seconds * 1e3;
  json["lookups_per_core_second"] = cost.lookups_per_core_second();
  json["dollars_per_million_lookups"] = cost.dollars / static_cast<double>(lookups) * 1e6;
  return json;
}

std::string comparison_table(const std::vector<Plan>& plans, const CoreRates& rates,
                             uint64_t lookups) {
  char line[300];
  std::snprintf(line, sizeof line, "  %-27s %10s %10s %10s %10s %10s %9s %9s  %s\n", "layout",
                "once", "up", "down", "server", "ms alone", "1/s core", "$ per 1M", "options");
  std::string table = line;
  for (const Plan& plan : plans) {
    const Layout& layout = plan.layout;
    const PlanCost cost = plan_cost(plan, rates, lookups);
    std::snprintf(line, sizeof line, "%c %-27s %10s %10s %10s %10s %10.1f %9.1f %9.2f  %s\n",
                  &plan == &plans.front() ? '*' : ' ', kind_name(kind_of(layout)).c_str(),
                  human_bytes(plan.sync_bytes).c_str(), human_bytes(layout.query_bytes()).c_str(),
                  human_bytes(layout.response_bytes()).c_str(),
                  human_bytes(cost.server_bytes).c_str(), cost.alone_seconds * 1e3,
                  cost.lookups_per_core_second(), cost.dollars / static_cast<double>(lookups) * 1e6,
                  options_for(layout).c_str());
    table += line;
  }
  return table;
}

}  // namespace blindfuse
