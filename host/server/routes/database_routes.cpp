#include "host/server/routes/database_routes.h"

#include <span>

#include "host/server/routes/hint_body.h"
#include "host/server/routes/part_selection.h"
#include "host/server/routes/problem.h"
#include "src/base/errors.h"
#include "src/base/hex.h"
#include "src/protocol/sha256.h"

namespace blindfuse {
namespace {

constexpr std::string_view kBinary = "application/octet-stream";
// An epoch's files never change; a year is as long as caches keep anything.
constexpr std::string_view kImmutable = "public, max-age=31536000, immutable";
// A cache between us must not hand to others what a client needed a key for.
constexpr std::string_view kImmutableForOne = "private, max-age=31536000, immutable";

std::string tag_of(std::string_view identity) {
  std::string tag = "\"";
  tag += identity;
  tag += '"';
  return tag;
}

PartSelection selection_of(const http::RequestHead& request, const Layout& layout) {
  const char* part = layout.mode() == Mode::kPacked ? "pack" : "shard";
  const std::string name = std::string(part) + "s";
  const auto parameters = http::parse_query(request.query);
  for (const auto& parameter : parameters) {
    // Ignoring a misspelt parameter would send everything instead of a part.
    if (parameter.first != name) {
      throw Refusal(ProblemKind::kMalformedShards,
                    "the only parameter of this database's hint is " + name);
    }
  }
  if (parameters.empty()) return {{0, layout.hint_part_count() - 1}};
  if (parameters.size() > 1) throw Refusal(ProblemKind::kMalformedShards, name + " is given twice");
  try {
    return parse_part_selection(parameters.front().second, layout.hint_part_count(), part);
  } catch (const InputError& error) {
    throw Refusal(ProblemKind::kMalformedShards, error.what());
  }
}

std::shared_ptr<const http::Body> body_of(const ServingEpoch& epoch,
                                          std::span<const uint8_t> downloaded) {
  return std::make_shared<http::MemoryBody>(downloaded, epoch.database().downloads);
}

std::string cache_control(bool private_only) {
  return std::string(private_only ? kImmutableForOne : kImmutable);
}

}  // namespace

http::Resource database_resource(const ServingEpoch& epoch) {
  const std::shared_ptr<const std::string> text = epoch.manifest_text();
  const std::span bytes(reinterpret_cast<const uint8_t*>(text->data()), text->size());
  return {
      .content_type = "application/json",
      // One epoch may get several signatures, one after another.
      .entity_tag = tag_of(encode_hex(sha256(bytes))),
      .cache_control = "no-cache",
      // As short as it is, it is sent whole.
      .body = std::make_shared<http::MemoryBody>(bytes, text),
  };
}

http::Resource shards_resource(const ServingEpoch& epoch, bool private_only) {
  return {
      .content_type = std::string(kBinary),
      .entity_tag = tag_of(encode_hex(epoch.database().manifest.table)),
      .cache_control = cache_control(private_only),
      .has_ranges = true,
      .body = body_of(epoch, epoch.database().downloads->table),
  };
}

http::Resource hint_resource(const ServingEpoch& epoch, const http::RequestHead& request,
                             bool private_only) {
  PartSelection selection = selection_of(request, epoch.layout());
  // The same parts of the same epoch are the same bytes, however they were asked for.
  const std::string identity = epoch.database().epoch + "/" + format_part_selection(selection);
  const Sha256Digest tag =
      sha256({reinterpret_cast<const uint8_t*>(identity.data()), identity.size()});
  return {
      .content_type = std::string(kBinary),
      .entity_tag = tag_of(encode_hex(tag)),
      .cache_control = cache_control(private_only),
      .has_ranges = true,
      .body = std::make_shared<HintBody>(epoch.database().downloads, std::move(selection)),
  };
}

}  // namespace blindfuse
