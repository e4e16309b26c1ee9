#include "host/server/database_routes.h"

#include <span>

#include "host/server/problem.h"
#include "host/server/resource.h"
#include "host/server/shard_selection.h"
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

void answer_database(const std::shared_ptr<const ServingEpoch>& epoch,
                     const httplib::Request& request, std::string_view range,
                     httplib::Response& response) {
  const std::string& text = epoch->database().manifest_text;
  send_resource(request, range,
                Resource{
                    .content_type = "application/json",
                    .entity_tag = tag_of(epoch->database().epoch),
                    .cache_control = "no-cache",
                    .parts = {{reinterpret_cast<const uint8_t*>(text.data()), text.size()}},
                    .owner = epoch,
                },
                response);
}

void answer_shards(const std::shared_ptr<const ServingEpoch>& epoch,
                   const httplib::Request& request, std::string_view range,
                   httplib::Response& response) {
  send_resource(request, range,
                Resource{
                    .content_type = std::string(kBinary),
                    .entity_tag = tag_of(encode_hex(epoch->database().manifest.table)),
                    .cache_control = std::string(kImmutable),
                    .parts = {epoch->database().table_bytes},
                    .owner = epoch,
                },
                response);
}

void answer_hint(const std::shared_ptr<const ServingEpoch>& epoch, const httplib::Request& request,
                 std::string_view range, httplib::Response& response) {
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
  const std::span<const uint8_t> hints = epoch->database().hints;
  for (const ShardRange& shards : selection) {
    const uint64_t count = uint64_t{shards.last} - shards.first + 1;
    resource.parts.push_back(
        hints.subspan(shards.first * layout.shard_hint_bytes(), count * layout.shard_hint_bytes()));
  }
  send_resource(request, range, std::move(resource), response);
}

}  // namespace blindfuse
