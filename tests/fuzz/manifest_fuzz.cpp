// Manifests: refused with InputError and a message of one short line, or such that writing and
// reading again gives the same. The text is tried as it is, and again with the epoch id that
// belongs to it, since a fuzzer cannot guess a hash.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "src/base/errors.h"
#include "src/base/hex.h"
#include "src/protocol/manifest.h"

namespace {

using nlohmann::json;

void require(bool holds) {
  if (!holds) std::abort();
}

void require_presentable(std::string_view message) {
  require(!message.empty() && message.size() <= 400);
  for (const char c : message) require(c >= ' ' && c <= '~');
}

// With one level, queries have first_bytes.
void require_levels(const blindfuse::Layout& layout, uint64_t first_bytes) {
  const uint64_t columns = layout.column_count();
  if (!layout.second) {
    require(layout.query_bytes() == first_bytes);
    require(layout.response_bytes() == (columns * layout.response_bits + 7) / 8);
    return;
  }
  const blindfuse::SecondLevel& second = *layout.second;
  const uint64_t width = uint64_t{second.group_shards} * layout.record_bytes();
  const uint64_t groups = (uint64_t{layout.shard_count} - 1) / second.group_shards + 1;
  const uint64_t packs = (width + 1023) / 1024;
  require(layout.log2_failure() <= blindfuse::kFailureLog2Max);
  require(second.group_shards == 1 || packs == 1);
  require(second.key_order == 0 || (second.key_order <= 512 && width <= second.key_order));
  require(layout.query_bytes() ==
          first_bytes + (second.key_order > 0 ? 24'576 : 0) + (groups * second.query_bits + 7) / 8);
  require(layout.response_bytes() ==
          packs * 256 * second.mask_bits + (width * second.response_bits + 7) / 8);
  for (const uint32_t shard : {0u, layout.shard_count - 1}) {
    const blindfuse::SecondPlace place = layout.second_place(shard);
    require(place.row < groups && place.column + layout.record_bytes() <= width);
    require(place.row * width + place.column == uint64_t{shard} * layout.record_bytes());
  }
}

// Requests for several keys: what a manifest that has them must be like.
void require_buckets(const blindfuse::Layout& layout) {
  if (!layout.batch) return require(layout.bucket_count() == 1);
  const uint64_t keys = layout.batch->keys_per_request, buckets = layout.batch->bucket_count;
  require(layout.kind == blindfuse::DatabaseKind::kKeyword && !layout.second);
  require(layout.mode() == blindfuse::Mode::kPacked);
  require(2 <= keys && keys <= 1024 && 3 <= buckets && buckets <= 4096 && keys <= buckets);
  require(buckets * layout.row_count <= uint64_t{1} << (layout.query_bits == 32 ? 24 : 26));
  require(layout.bucket_count() == buckets && layout.record_count() == 3 * layout.key_count);
  require(buckets * layout.bucket_shard_count() == layout.shard_count);
  require(buckets * layout.bucket_column_count() == layout.column_count());
}

// Sizes that a layout which was taken must have, from the definitions.
void require_sizes(const blindfuse::Layout& layout) {
  require_buckets(layout);
  const uint64_t buckets = layout.batch ? layout.batch->bucket_count : 1;
  const uint64_t words_bytes = buckets * layout.row_count * layout.query_bits / 8;
  require(layout.record_bytes() >= 1 && layout.query_words_bytes() == words_bytes);
  if (layout.mode() == blindfuse::Mode::kHint) {
    require(layout.lwe->name != "ring-2048" && layout.pack_count() == 0);
    require(layout.query_bytes() == words_bytes && layout.hint_part_count() == layout.shard_count);
    return;
  }
  require(layout.lwe->name == "ring-2048");
  require(layout.row_count % 2048 == 0 && layout.row_count <= 1u << 24);
  require_levels(layout, words_bytes + 24'576);
  require(layout.pack_count() == (layout.column_count() + 1023) / 1024);
  require(layout.hint_bytes() == uint64_t{256} * layout.hint_bits * layout.pack_count());
  const blindfuse::HintParts first = layout.hint_parts_of(0);
  const blindfuse::HintParts last = layout.hint_parts_of(layout.shard_count - 1);
  require(first.first == 0 && last.last == layout.pack_count() - 1);
  require(first.last - first.first == last.last - last.first);
}

// What is signed does not depend on how it was written, and a right signature is right again.
void try_signature(const blindfuse::ParsedManifest& parsed) {
  require(parsed.signature.has_value() == !parsed.signed_text.empty());
  if (!parsed.signature) return require(!blindfuse::is_rightly_signed(parsed));
  const std::string text = blindfuse::serialize_manifest(parsed.manifest, parsed.signature);
  const blindfuse::ParsedManifest again = blindfuse::parse_manifest(text);
  require(again.signature == parsed.signature);
  require(again.signed_text == blindfuse::signed_text(parsed.manifest, *parsed.signature));
  if (again.signed_text == parsed.signed_text) {
    require(blindfuse::is_rightly_signed(again) == blindfuse::is_rightly_signed(parsed));
  }
  require_presentable(blindfuse::numbered(parsed.signature->sequence, parsed.signature->time));
}

void try_manifest(std::string_view text) {
  try {
    const blindfuse::ParsedManifest parsed = blindfuse::parse_manifest(text);
    require(text.size() <= blindfuse::kManifestBytesMax);
    const blindfuse::Layout& layout = parsed.manifest.layout;
    require(layout.noise().log2_failure <= blindfuse::kFailureLog2Max);
    require_sizes(layout);
    const std::string again_text = blindfuse::serialize_manifest(parsed.manifest);
    const blindfuse::ParsedManifest again = blindfuse::parse_manifest(again_text);
    require(again.manifest == parsed.manifest);
    require(again.epoch == blindfuse::epoch_id(parsed.manifest));
    require(blindfuse::serialize_manifest(again.manifest) == again_text);
    try_signature(parsed);
  } catch (const blindfuse::InputError& error) {
    require_presentable(error.what());
  }
}

// The same members with their epoch id; empty when the text is not a flat object.
std::string with_epoch(std::string_view text) {
  // As deep as the parser goes, so that taking it apart does not exhaust our own stack.
  const auto flat = [](int depth, json::parse_event_t, json&) { return depth <= 2; };
  json members = json::parse(text.begin(), text.end(), flat, false);
  if (!members.is_object()) return "";
  members.erase("epoch");
  json signature = json::object();
  for (const char* name : {"sequence", "time", "signer", "signature"}) {
    if (!members.contains(name)) continue;
    signature[name] = members[name];
    members.erase(name);
  }
  blindfuse::Sha256 hash;
  hash.update("blindfuse/epoch/1");
  hash.update(members.dump());
  members["epoch"] = blindfuse::encode_hex(hash.finish());
  members.update(signature);
  return members.dump();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try_manifest(text);
  try_manifest(with_epoch(text));
  return 0;
}
