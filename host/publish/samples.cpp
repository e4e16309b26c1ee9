#include "host/publish/samples.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "src/base/base64.h"
#include "src/base/errors.h"
#include "src/base/hex.h"

namespace blindfuse {
namespace {

using nlohmann::json;

std::span<const uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// The value that counts of the first entry that `matches`.
template <typename Matches>
Sha256Digest value_in(const Spool& spool, uint32_t partition, const Matches& matches) {
  std::optional<Sha256Digest> value;
  spool.visit(partition, [&](const SpoolEntry& entry, std::string_view) {
    if (matches(entry)) value = sha256(bytes_of(entry.value));
    return !value;
  });
  invariant(value.has_value(), "a sample comes from the input");
  return *value;
}

std::vector<Sample> index_samples(const Input& input) {
  const uint64_t count = input.spool->appended_count();
  const uint64_t wanted = std::min<uint64_t>(count, kSampleCount);
  std::vector<Sample> samples;
  for (uint64_t j = 0; j < wanted; ++j) {
    const uint64_t i = wanted == 1 ? 0 : j * (count - 1) / (wanted - 1);
    const auto has_number = [i](const SpoolEntry& entry) { return entry.hash.slot_hash == i; };
    samples.push_back({std::to_string(i), value_in(*input.spool, index_partition(i), has_number)});
  }
  return samples;
}

}  // namespace

std::vector<Sample> take_samples(const Input& input, DatabaseKind kind, const Salt& salt) {
  if (kind == DatabaseKind::kIndex) return index_samples(input);
  std::vector<Sample> samples;
  for (const auto& [slot_hash, key] : input.sample_keys) {
    const KeyHash hash = key_hash(salt, key);
    const uint32_t partition = shard_of(hash.shard_hash, Spool::kPartitions);
    const auto has_hash = [&hash](const SpoolEntry& entry) { return entry.hash == hash; };
    samples.push_back({key, value_in(*input.spool, partition, has_hash)});
  }
  return samples;
}

std::string serialize_samples(const std::vector<Sample>& samples) {
  json list = json::array();
  for (const Sample& sample : samples) {
    list.push_back(
        {{"key", encode_base64(bytes_of(sample.key))}, {"value_sha256", encode_hex(sample.value)}});
  }
  return json{{"samples", list}}.dump(2) + "\n";
}

std::vector<Sample> parse_samples(std::string_view text) {
  std::vector<Sample> samples;
  try {
    const json parsed = json::parse(text);
    for (const json& item : parsed.at("samples")) {
      const auto key = decode_base64(item.at("key").get<std::string>());
      const auto value = decode_hex(item.at("value_sha256").get<std::string>());
      if (!key || !value || value->size() != 32) throw InputError("the samples are malformed");
      Sample sample{*key, {}};
      std::ranges::copy(*value, sample.value.begin());
      samples.push_back(std::move(sample));
    }
  } catch (const json::exception& error) {
    throw InputError(std::string("the samples are malformed: ") + error.what());
  }
  return samples;
}

}  // namespace blindfuse
