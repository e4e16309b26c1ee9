#include "host/commands/plan_report.h"

#include <cstdio>
#include <fstream>
#include <string_view>
#include <utility>

#include "host/publish/planner.h"
#include "host/publish/recommendation.h"
#include "host/system/memory.h"
#include "src/base/errors.h"
#include "src/base/hex.h"
#include "src/program/log.h"
#include "src/program/printable.h"
#include "src/program/program.h"

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

nlohmann::json signature_json(const std::optional<ManifestSignature>& signature) {
  if (!signature) return nullptr;
  return {{"signer", encode_hex(signature->signer)},
          {"sequence", signature->sequence},
          {"time", signature->time},
          {"time_utc", utc_text(signature->time)}};
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

std::string options_for(const Layout& layout) {
  const LayoutKind kind = kind_of(layout);
  std::string options = "--mode " + std::string(mode_name(kind.mode));
  if (layout.lwe != &default_lwe_params(kind.mode)) {
    options = "--params " + std::string(layout.lwe->name);
  }
  if (kind.batch) {
    options += " --keys-per-request " + std::to_string(kind.batch->keys_per_request);
  } else if (kind.levels == 2) {
    options += " --levels 2";
  }
  if (kind.short_key) options += " --short-key";
  return options + " --shards " + std::to_string(layout.shard_count);
}

namespace {

// "0.0513", "6.9", "342", "7.8k"
std::string number(double value) {
  if (value >= 999.5) return human_count(value);
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

std::string duration(double seconds) {
  return seconds < 1 ? number(seconds * 1e3) + " ms" : number(seconds) + " s";
}

// "107.8 kB up, 17.6 kB down"
std::string up_and_down(const Layout& layout) {
  return human_bytes(layout.query_bytes()) + " up, " + human_bytes(layout.response_bytes()) +
         " down";
}

// Writes a name, and the text after it.
std::string line(const char* name, const std::string& text) {
  char begin[32];
  std::snprintf(begin, sizeof begin, "  %-15s", name);
  return begin + text + "\n";
}

// Writes five lines.
std::string cost_lines(const Plan& plan, const LayoutCost& cost) {
  const Layout& layout = plan.layout;
  const bool several = layout.batch.has_value();
  const bool packed = layout.mode() == Mode::kPacked;
  std::string memory =
      human_bytes(cost.server_bytes) + ": matrix " + human_bytes(layout.matrix_bytes());
  if (packed) {
    memory += ", packing tables " + human_bytes(layout.packing_table_bytes());
  }
  memory += std::string(packed ? ", masks " : ", hints ") + human_bytes(layout.hint_bytes());
  return line(several ? "first request" : "first look-up",
              human_bytes(cost.first_bytes) + ": " + human_bytes(plan.sync_bytes) +
                  " of tables and " + (packed ? "masks, " : "hints, ") + up_and_down(layout)) +
         line(several ? "later request" : "later look-up",
              human_bytes(cost.later_bytes) + ": " + up_and_down(layout)) +
         line("server memory", memory) +
         line("time", duration(cost.alone_seconds) + " of one core alone, " +
                          duration(cost.batch_seconds) + " in batches of " +
                          std::to_string(kFullBatch)) +
         line("throughput", number(cost.lookups_per_core_second) +
                                (several ? " keys" : " look-ups") + " a second and core");
}

std::string joined(const std::vector<std::string>& reasons) {
  std::string text;
  for (const std::string& reason : reasons) text += (text.empty() ? "" : "; ") + reason;
  return text;
}

std::string alternative_lines(const Alternative& alternative, const CoreRates& rates) {
  const LayoutCost cost = layout_cost(alternative.plan, rates);
  return "  " + options_for(alternative.plan.layout) + "\n    " + joined(alternative.reasons) +
         "\n    first " + human_bytes(cost.first_bytes) + ", later " +
         human_bytes(cost.later_bytes) + "; memory " + human_bytes(cost.server_bytes) + "; " +
         duration(cost.alone_seconds) + " alone, " + number(cost.lookups_per_core_second) +
         " a second and core\n";
}

std::string kept_lines(const PlanQuestion& question) {
  if (question.kept) {
    return "A build keeps the existing layout, and --fresh chooses again:\n  " +
           options_for(*question.kept) + ": " + up_and_down(*question.kept) + " a " +
           request_name(*question.kept) + "\n\n";
  }
  if (question.why_not_kept.empty()) return "";
  return "A build chooses the layout again, because " + question.why_not_kept + "\n\n";
}

nlohmann::json item(const Plan& plan, const CoreRates& rates) {
  const LayoutCost cost = layout_cost(plan, rates);
  nlohmann::json json = layout_json(plan.layout);
  json["options"] = options_for(plan.layout);
  json["sync_bytes"] = plan.sync_bytes;
  json["total_bytes"] = plan.total_bytes;
  json["first_bytes"] = cost.first_bytes;
  json["later_bytes"] = cost.later_bytes;
  json["server_bytes"] = cost.server_bytes;
  json["alone_milliseconds"] = cost.alone_seconds * 1e3;
  json["batch_milliseconds"] = cost.batch_seconds * 1e3;
  json["lookups_per_core_second"] = cost.lookups_per_core_second;
  return json;
}

std::string text_of(const PlanQuestion& question, const Recommendation& found,
                    const CoreRates& rates) {
  const uint64_t lookups = question.request.lookups_per_client;
  const Layout& best = found.best.layout;
  std::string text = kept_lines(question) + counted(question.request.key_count, "key") +
                     ", values of up to " + counted(question.longest_value, "byte") + ", " +
                     counted(lookups, "look-up") +
                     " a client and epoch\n\nRecommended: " + options_for(best) + "\n" +
                     cost_lines(found.best, layout_cost(found.best, rates));
  if (!found.alternatives.empty()) text += "\nAlternatives:\n";
  for (const Alternative& each : found.alternatives) text += alternative_lines(each, rates);
  return text +
         "\nTimes are estimates for one core of this machine: " + printable(processor_name()) +
         ".\nIn " + security_line(*best.lwe) + ".\n";
}

nlohmann::json json_of(const PlanQuestion& question, const Recommendation& found,
                       const CoreRates& rates) {
  nlohmann::json layouts = nlohmann::json::array(), alternatives = nlohmann::json::array();
  for (const Plan& plan : found.plans) {
    layouts.push_back(item(plan, rates));
    layouts.back()["chosen"] = plan.layout == found.best.layout;
  }
  for (const Alternative& each : found.alternatives) {
    alternatives.push_back(item(each.plan, rates));
    alternatives.back()["reasons"] = each.reasons;
  }
  nlohmann::json report = {
      {"lookups_per_client", question.request.lookups_per_client},
      {"batch", kFullBatch},
      {"processor", processor_name()},
      {"recommended", item(found.best, rates)},
      {"alternatives", std::move(alternatives)},
      {"layouts", std::move(layouts)},
  };
  if (question.request.batch) {
    report["keys_that_pay"] =
        found.keys_that_pay ? nlohmann::json(*found.keys_that_pay) : nlohmann::json();
  }
  if (question.kept) report["kept"] = layout_json(*question.kept);
  if (!question.why_not_kept.empty()) report["why_not_kept"] = question.why_not_kept;
  return report;
}

void warn_of_memory(uint64_t server_bytes) {
  try {
    check_memory("a server of this layout", server_bytes);
  } catch (const ResourceError& error) {
    log_warning("{}", error.what());
  }
}

}  // namespace

std::string plan_text(const PlanQuestion& question, const CoreRates& rates) {
  return text_of(question, recommend(question.request, question.levels_fixed, rates), rates);
}

nlohmann::json plan_json(const PlanQuestion& question, const CoreRates& rates) {
  return json_of(question, recommend(question.request, question.levels_fixed, rates), rates);
}

void report_plan(const PlanQuestion& question, bool as_json) {
  const CoreRates rates = measure_core_rates();
  const Recommendation found = recommend(question.request, question.levels_fixed, rates);
  warn_of_memory(layout_cost(found.best, rates).server_bytes);
  print(as_json ? json_of(question, found, rates).dump(2) + "\n" : text_of(question, found, rates));
}

namespace {

// The text after the colon of a line such as "model name\t: AMD EPYC 9R45". Empty for another name.
std::string value_of(std::string_view line, std::string_view name) {
  if (!line.starts_with(name)) return "";
  const size_t colon = line.find_first_not_of(" \t", name.size());
  if (colon == std::string_view::npos || line[colon] != ':') return "";
  const size_t first = line.find_first_not_of(" \t", colon + 1);
  if (first == std::string_view::npos) return "";
  return std::string(line.substr(first, line.find_last_not_of(" \t\r") + 1 - first));
}

}  // namespace

std::string processor_name(const std::filesystem::path& root) {
  std::ifstream file(root / "proc" / "cpuinfo");
  std::string implementer, part;
  for (std::string line; std::getline(file, line);) {
    if (std::string name = value_of(line, "model name"); !name.empty()) return name;
    if (implementer.empty()) implementer = value_of(line, "CPU implementer");
    if (part.empty()) part = value_of(line, "CPU part");
  }
  if (implementer.empty() || part.empty()) return "unknown";
  return "CPU implementer " + implementer + ", part " + part;
}

}  // namespace blindfuse
