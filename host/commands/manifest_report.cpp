#include "host/commands/manifest_report.h"

#include "host/publish/planner.h"
#include "src/base/hex.h"

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

}  // namespace blindfuse
