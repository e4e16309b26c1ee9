#include "host/server/routes/database_routes.h"

#include <span>

#include "host/server/routes/problem.h"
#include "host/server/routes/shard_selection.h"
#include "src/errors.h"
#include "src/hex.h"
#include "src/sha256.h"

namespace blindfuse {
namespace {

constexpr std::string_view kBinary = "application/octet-stream";
// An epoch's files never change; a year is as long as caches keep anything.
constexpr std::string_view kImmutable = "public, max-age=31536000, immutable";

std::string tag_of(std::string_view identity) {
  std::string tag = "\"";
  tag += identity;
  tag += '"';
  return tag;
}

ShardSelection selection_of(const httplib::Request& request, uint32_t shard_count) {
  for (const auto& [name, value] : request.params) {
    // Ignoring a misspelt parameter would send everything instead of a part.
    if (name != "shards") {
      throw Refusal(ProblemKind::kMalformedShards, "the only parameter of a hint is shards");
    }
  }
  const size_t count = request.get_param_value_count("shards");
  if (count == 0) return {{0, shard_count - 1}};
  if (count > 1) throw Refusal(ProblemKind::kMalformedShards, "shards is given twice");
  try {
    return parse_shard_selection(request.get_param_value("shards"), shard_count);
  } catch (const BadInput& error) {
    throw Refusal(ProblemKind::kMalformedShards, error.what());
  }
}

}  // namespace

Resource database_resource(const std::shared_ptr<const ServingEpoch>& epoch) {
  const std::string& text = epoch->database().manifest_text;
  return {
      .content_type = "application/json",
      .entity_tag = tag_of(epoch->database().epoch),
      .cache_control = "no-cache",
      .parts = {{reinterpret_cast<const uint8_t*>(text.data()), text.size()}},
      .owner = epoch,
  };
}

Resource shards_resource(const std::shared_ptr<const ServingEpoch>& epoch) {
  return {
      .content_type = std::string(kBinary),
      .entity_tag = tag_of(encode_hex(epoch->database().manifest.table)),
      .cache_control = std::string(kImmutable),
      .parts = {epoch->database().table_bytes},
      .owner = epoch,
  };
}

Resource hint_resource(const std::shared_ptr<const ServingEpoch>& epoch,
                       const httplib::Request& request) {
  const Layout& layout = epoch->layout();
  const ShardSelection selection = selection_of(request, layout.shard_count);
  // The same shards of the same epoch are the same bytes, however they were asked for.
  const std::string identity = epoch->database().epoch + "/" + format_shard_selection(selection);
  const Sha256Digest tag =
      sha256({reinterpret_cast<const uint8_t*>(identity.data()), identity.size()});
  Resource resource{
      .content_type = std::string(kBinary),
      .entity_tag = tag_of(encode_hex(tag)),
      .cache_control = std::string(kImmutable),
      .parts = {},
      .owner = epoch,
  };
  for (const ShardRange& shards : selection) {
    for (uint64_t shard = shards.first; shard <= shards.last; ++shard) {
      resource.parts.push_back(*epoch->database().hints[shard]);
    }
  }
  return resource;
}

}  // namespace blindfuse
