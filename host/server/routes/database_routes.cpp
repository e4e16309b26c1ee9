#include "host/server/routes/database_routes.h"

#include <span>

#include "host/server/routes/part_selection.h"
#include "host/server/routes/problem.h"
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

PartSelection selection_of(const httplib::Request& request, const Layout& layout) {
  const char* part = layout.mode() == Mode::kPacked ? "pack" : "shard";
  const std::string parameter = std::string(part) + "s";
  for (const auto& [name, value] : request.params) {
    // Ignoring a misspelt parameter would send everything instead of a part.
    if (name != parameter) {
      throw Refusal(ProblemKind::kMalformedShards,
                    "the only parameter of this database's hint is " + parameter);
    }
  }
  const size_t count = request.get_param_value_count(parameter);
  if (count == 0) return {{0, layout.hint_part_count() - 1}};
  if (count > 1) throw Refusal(ProblemKind::kMalformedShards, parameter + " is given twice");
  try {
    return parse_part_selection(request.get_param_value(parameter), layout.hint_part_count(), part);
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
  const PartSelection selection = selection_of(request, layout);
  // The same parts of the same epoch are the same bytes, however they were asked for.
  const std::string identity = epoch->database().epoch + "/" + format_part_selection(selection);
  const Sha256Digest tag =
      sha256({reinterpret_cast<const uint8_t*>(identity.data()), identity.size()});
  Resource resource{
      .content_type = std::string(kBinary),
      .entity_tag = tag_of(encode_hex(tag)),
      .cache_control = std::string(kImmutable),
      .parts = {},
      .owner = epoch,
  };
  for (const HintParts& parts : selection) {
    for (uint64_t i = parts.first; i <= parts.last; ++i) {
      resource.parts.push_back(*epoch->database().hints[i]);
    }
  }
  return resource;
}

}  // namespace blindfuse
