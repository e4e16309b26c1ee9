#include "src/protocol/manifest.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>

#include "src/base/errors.h"
#include "src/base/hex.h"

namespace blindfuse {

std::optional<PublicKey> parse_public_key(std::string_view text) {
  PublicKey key;
  if (text.size() != 2 * key.size() ||
      text.find_first_not_of("0123456789abcdef") != std::string_view::npos) {
    return std::nullopt;
  }
  const auto bytes = decode_hex(text);
  std::copy(bytes->begin(), bytes->end(), key.begin());
  return key;
}

std::string utc_text(uint64_t seconds) {
  constexpr uint64_t kSecondsADay = 86'400;
  // The last day is 31 December 9999.
  constexpr uint64_t kLastDay = 2'932'896;
  const uint64_t day = seconds / kSecondsADay, second = seconds % kSecondsADay;
  if (day > kLastDay) return "second " + std::to_string(seconds);
  // std::time_t would not do: it has 32 bits in WebAssembly.
  const std::chrono::year_month_day date{
      std::chrono::sys_days{std::chrono::days{static_cast<int>(day)}}};
  char text[64];
  std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02u:%02u:%02uZ", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<unsigned>(second / 3600), static_cast<unsigned>(second / 60 % 60),
                static_cast<unsigned>(second % 60));
  return text;
}

std::string numbered(uint64_t sequence, uint64_t time) {
  return "number " + std::to_string(sequence) + " of " + utc_text(time);
}

namespace {

using nlohmann::json;

constexpr std::string_view kHintFormat = "blindfuse/1";
constexpr std::string_view kPackedFormat = "blindfuse/2";
constexpr std::string_view kSeveralKeysFormat = "blindfuse/3";
constexpr unsigned kFormatMax = 3;
constexpr std::array kSignatureMembers = {"sequence", "time", "signer", "signature"};

std::string_view format_of(Mode mode, bool is_for_several_keys) {
  if (mode == Mode::kHint) return kHintFormat;
  return is_for_several_keys ? kSeveralKeysFormat : kPackedFormat;
}

// True if the format has a number that is greater than those known here.
bool is_newer(std::string_view format) {
  constexpr std::string_view kPrefix = "blindfuse/";
  if (!format.starts_with(kPrefix)) return false;
  unsigned number = 0;
  const char* const end = format.data() + format.size();
  const auto parsed = std::from_chars(format.data() + kPrefix.size(), end, number);
  return parsed.ec == std::errc() && parsed.ptr == end && number > kFormatMax;
}

// The canonical form of RFC 8785: nlohmann's objects are ordered by name and its dump has no white
// space, which suffices for members that are strings and integers.
EpochId epoch_of(json members) {
  members.erase("epoch");
  for (const char* name : kSignatureMembers) members.erase(name);
  Sha256 hash;
  hash.update("blindfuse/epoch/1");
  hash.update(members.dump());
  return encode_hex(hash.finish());
}

std::string signed_text_of(json members) {
  members.erase("signature");
  return "blindfuse/manifest/1" + members.dump();
}

json members_of(const Manifest& manifest) {
  const Layout& layout = manifest.layout;
  json members = {
      {"format", format_of(layout.mode(), layout.batch.has_value())},
      {"mode", mode_name(layout.mode())},
      {"kind", layout.kind == DatabaseKind::kKeyword ? "keyword" : "index"},
      {"lwe", layout.lwe->name},
      {"key_count", layout.key_count},
      {"shard_count", layout.shard_count},
      {"row_count", layout.row_count},
      {"arity", layout.arity},
      {"segment_length", layout.segment_length},
      {"digest_bytes", layout.record.digest_bytes},
      {"length_bytes", layout.record.length_bytes},
      {"value_bytes", layout.record.value_bytes},
      {"query_bits", layout.query_bits},
      {"response_bits", layout.response_bits},
      {"hint_bits", layout.hint_bits},
      {"failure_log2", static_cast<int64_t>(std::ceil(layout.log2_failure()))},
      {"salt", encode_hex(manifest.salt)},
      {"seed", encode_hex(manifest.seed)},
      {"table", encode_hex(manifest.table)},
      {"samples", encode_hex(manifest.samples)},
  };
  if (layout.mode() == Mode::kPacked) members["levels"] = layout.second ? 2 : 1;
  if (layout.second) {
    members["shards_a_group"] = layout.second->group_shards;
    members["query2_bits"] = layout.second->query_bits;
    members["mask2_bits"] = layout.second->mask_bits;
    members["response2_bits"] = layout.second->response_bits;
    members["short_key_order"] = layout.second->key_order;
  }
  if (layout.batch) {
    members["keys_per_request"] = layout.batch->keys_per_request;
    members["bucket_count"] = layout.batch->bucket_count;
  }
  return members;
}

json signed_members_of(const Manifest& manifest, const ManifestSignature& signature) {
  json members = members_of(manifest);
  members["epoch"] = epoch_of(members);
  members["sequence"] = signature.sequence;
  members["time"] = signature.time;
  members["signer"] = encode_hex(signature.signer);
  return members;
}

// Makes a server's text fit for a message: short, on one line, in ASCII.
std::string shown(std::string_view text) {
  return json(text.substr(0, 40)).dump(-1, ' ', true, json::error_handler_t::replace);
}

// Reads members with errors that name them.
class Members {
 public:
  explicit Members(const json& object) : object_(object) {}

  const json& at(const char* name) const {
    const auto found = object_.find(name);
    if (found == object_.end()) throw InputError(std::string("manifest has no \"") + name + "\"");
    return *found;
  }

  std::string text(const char* name) const {
    const json& member = at(name);
    if (!member.is_string()) throw wrong(name, "a string");
    return member.get<std::string>();
  }

  template <typename Integer>
  Integer integer(const char* name) const {
    const json& member = at(name);
    if (!member.is_number_unsigned()) throw wrong(name, "a whole number that is not negative");
    const uint64_t value = member.get<uint64_t>();
    if (value > std::numeric_limits<Integer>::max()) throw wrong(name, "smaller");
    return static_cast<Integer>(value);
  }

  uint64_t integer_within(const char* name, uint64_t least, uint64_t most) const {
    const auto value = integer<uint64_t>(name);
    if (value < least || value > most) {
      throw wrong(name, "from " + std::to_string(least) + " to " + std::to_string(most));
    }
    return value;
  }

  bool has(const char* name) const { return object_.contains(name); }

  template <size_t kSize>
  std::array<uint8_t, kSize> bytes(const char* name) const {
    const std::string digits = text(name);
    const auto decoded = decode_hex(digits);
    const bool upper =
        std::any_of(digits.begin(), digits.end(), [](char c) { return c >= 'A' && c <= 'F'; });
    if (!decoded || upper || decoded->size() != kSize) {
      throw wrong(name, std::to_string(2 * kSize) + " lower-case hex digits");
    }
    std::array<uint8_t, kSize> result;
    std::copy(decoded->begin(), decoded->end(), result.begin());
    return result;
  }

 private:
  static InputError wrong(const char* name, const std::string& expected) {
    return InputError(std::string("manifest's \"") + name + "\" must be " + expected);
  }

  const json& object_;
};

json parse_flat_object(std::string_view text) {
  if (text.size() > kManifestBytesMax) {
    throw InputError("manifest is longer than " + std::to_string(kManifestBytesMax) + " bytes");
  }
  // The parser takes a byte of zero for the end.
  if (const size_t zero = text.find('\0'); zero != text.npos) {
    throw InputError("manifest is not JSON: wrong at byte " + std::to_string(zero + 1));
  }
  // Values are strings and numbers, so nothing may nest: this bounds the recursion of everything
  // that follows.
  const auto flat = [](int depth, json::parse_event_t event, json&) {
    const bool opens =
        event == json::parse_event_t::object_start || event == json::parse_event_t::array_start;
    if (opens && depth > 0) throw InputError("manifest's members must be strings and integers");
    return true;
  };
  try {
    json object = json::parse(text.begin(), text.end(), flat);
    if (!object.is_object()) throw InputError("manifest is not a JSON object");
    return object;
  } catch (const json::parse_error& error) {
    throw InputError("manifest is not JSON: wrong at byte " + std::to_string(error.byte));
  } catch (const json::exception&) {
    throw InputError("manifest is not JSON: a number is too large");
  }
}

DatabaseKind parse_kind(const std::string& kind) {
  if (kind == "keyword") return DatabaseKind::kKeyword;
  if (kind == "index") return DatabaseKind::kIndex;
  throw InputError("manifest's \"kind\" must be \"keyword\" or \"index\"");
}

const LweParams* parse_lwe(const std::string& name, const std::string& mode) {
  if (mode != mode_name(Mode::kHint) && mode != mode_name(Mode::kPacked)) {
    throw InputError("manifest's \"mode\" is " + shown(mode) +
                     "; this program knows \"hint\" and \"packed\"");
  }
  const LweParams* set = find_lwe_params(name);
  if (set == nullptr) {
    throw InputError("manifest names the LWE parameter set " + shown(name) +
                     ", which this program does not know; a newer one may");
  }
  if (mode_name(set->mode) != mode) {
    throw InputError("manifest's \"mode\" is \"" + mode + "\", but the parameter set " + name +
                     " is for \"" + std::string(mode_name(set->mode)) + "\"");
  }
  return set;
}

bool names_batch(const Members& members) {
  return members.has("keys_per_request") || members.has("bucket_count");
}

Layout parse_layout(const Members& members) {
  Layout layout;
  layout.kind = parse_kind(members.text("kind"));
  layout.lwe = parse_lwe(members.text("lwe"), members.text("mode"));
  layout.key_count = members.integer<uint64_t>("key_count");
  layout.shard_count = members.integer<uint32_t>("shard_count");
  layout.row_count = members.integer<uint32_t>("row_count");
  layout.arity = members.integer<uint32_t>("arity");
  layout.segment_length = members.integer<uint32_t>("segment_length");
  layout.record.digest_bytes = members.integer<uint32_t>("digest_bytes");
  layout.record.length_bytes = members.integer<uint32_t>("length_bytes");
  layout.record.value_bytes = members.integer<uint32_t>("value_bytes");
  layout.query_bits = members.integer<uint32_t>("query_bits");
  layout.response_bits = members.integer<uint32_t>("response_bits");
  layout.hint_bits = members.integer<uint32_t>("hint_bits");
  if (layout.mode() == Mode::kPacked && members.integer_within("levels", 1, 2) == 2) {
    layout.second = {.group_shards = members.integer<uint32_t>("shards_a_group"),
                     .query_bits = members.integer<uint32_t>("query2_bits"),
                     .mask_bits = members.integer<uint32_t>("mask2_bits"),
                     .response_bits = members.integer<uint32_t>("response2_bits"),
                     .key_order = members.integer<uint32_t>("short_key_order")};
  }
  if (names_batch(members)) {
    layout.batch = {.keys_per_request = members.integer<uint32_t>("keys_per_request"),
                    .bucket_count = members.integer<uint32_t>("bucket_count")};
  }
  check_layout(layout);
  return layout;
}

// There are all four members, or none.
std::optional<ManifestSignature> parse_signature(const Members& members) {
  if (std::none_of(kSignatureMembers.begin(), kSignatureMembers.end(),
                   [&](const char* name) { return members.has(name); })) {
    return std::nullopt;
  }
  ManifestSignature signature;
  signature.sequence = members.integer_within("sequence", 1, kManifestIntegerMax);
  signature.time = members.integer_within("time", 0, kManifestIntegerMax);
  signature.signer = members.bytes<std::tuple_size_v<PublicKey>>("signer");
  signature.signature = members.bytes<std::tuple_size_v<Signature>>("signature");
  return signature;
}

}  // namespace

bool is_epoch_id(std::string_view text) {
  return text.size() == 2 * std::tuple_size_v<Sha256Digest> &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

EpochId epoch_id(const Manifest& manifest) { return epoch_of(members_of(manifest)); }

std::string serialize_manifest(const Manifest& manifest,
                               const std::optional<ManifestSignature>& signature) {
  json members;
  if (signature) {
    members = signed_members_of(manifest, *signature);
    members["signature"] = encode_hex(signature->signature);
  } else {
    members = members_of(manifest);
    members["epoch"] = epoch_of(members);
  }
  return members.dump(2) + "\n";
}

std::string signed_text(const Manifest& manifest, const ManifestSignature& signature) {
  return signed_text_of(signed_members_of(manifest, signature));
}

ParsedManifest parse_manifest(std::string_view text) {
  const json object = parse_flat_object(text);
  const Members members(object);
  const std::string format = members.text("format");
  if (format != kHintFormat && format != kPackedFormat && format != kSeveralKeysFormat) {
    const std::string message = "manifest's \"format\" is " + shown(format) +
                                "; this program knows " + shown(kHintFormat) + ", " +
                                shown(kPackedFormat) + " and " + shown(kSeveralKeysFormat);
    if (is_newer(format)) throw NewerFormatError(message + "; update it");
    throw InputError(message);
  }
  ParsedManifest parsed;
  parsed.epoch = encode_hex(members.bytes<32>("epoch"));
  const Mode mode = parse_lwe(members.text("lwe"), members.text("mode"))->mode;
  const bool is_for_several_keys = names_batch(members);
  const std::string_view expected = format_of(mode, is_for_several_keys);
  if (format != expected && mode == Mode::kPacked && format != kHintFormat) {
    throw InputError("manifest's \"format\" is " + shown(format) +
                     (is_for_several_keys
                          ? ", but requests for several keys have " + shown(expected) + " alone"
                          : ", but it has neither \"keys_per_request\" nor \"bucket_count\""));
  }
  if (format != expected) {
    // Version 0.2.0 had the mode "packed" in the first format, with other packs and keys, and
    // without the members of levels.
    throw InputError("manifest's \"format\" is " + shown(format) +
                     ", but this program knows the mode \"" + std::string(mode_name(mode)) +
                     "\" in " + shown(expected) + " alone" +
                     (mode == Mode::kPacked
                          ? "; the database has to be built again by this version, with --fresh"
                          : ""));
  }
  parsed.manifest.layout = parse_layout(members);
  parsed.manifest.salt = members.bytes<kSaltBytes>("salt");
  parsed.manifest.seed = members.bytes<32>("seed");
  parsed.manifest.table = members.bytes<32>("table");
  parsed.manifest.samples = members.bytes<32>("samples");
  const json& failure = members.at("failure_log2");
  // An unsigned one is positive, and might not be once it is an int64_t.
  if (!failure.is_number_integer() || failure.is_number_unsigned() ||
      failure.get<int64_t>() > static_cast<int64_t>(kFailureLog2Max)) {
    throw InputError("manifest's \"failure_log2\" must be a whole number of at most -40");
  }
  if (epoch_of(object) != parsed.epoch) {
    throw InputError("manifest is altered: its \"epoch\" is not the hash of its other members");
  }
  parsed.signature = parse_signature(members);
  if (parsed.signature) parsed.signed_text = signed_text_of(object);
  return parsed;
}

bool is_rightly_signed(const ParsedManifest& parsed) {
  return parsed.signature &&
         verify_ed25519(parsed.signature->signer, parsed.signed_text, parsed.signature->signature);
}

void check_signature(const ParsedManifest& parsed) {
  if (!parsed.signature || is_rightly_signed(parsed)) return;
  throw InputError("manifest's signature is wrong: it is not that of its signer " +
                   encode_hex(parsed.signature->signer) +
                   " for what it says; build the database again");
}

}  // namespace blindfuse
