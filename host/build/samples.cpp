#include "host/build/samples.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "src/base64.h"
#include "src/errors.h"
#include "src/hex.h"

namespace blindfuse {
namespace {

using nlohmann::json;

std::span<const uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

Sample sample_of(const Input& input, std::string key, uint32_t partition, const KeyHash& hash,
                 DuplicatePolicy policy) {
  SpoolPart part = input.spool->load(partition, partition);
  resolve_duplicates(part.entries, policy);
  const auto entry = std::ranges::find(part.entries, hash, &SpoolEntry::hash);
  invariant(entry != part.entries.end(), "a sample comes from the input");
  return {std::move(key), sha256(bytes_of(entry->value))};
}

std::vector<Sample> index_samples(const Input& input) {
  const uint64_t count = input.spool->entry_count();
  const uint64_t wanted = std::min<uint64_t>(count, kSampleCount);
  std::vector<Sample> samples;
  for (uint64_t j = 0; j < wanted; ++j) {
    const uint64_t i = wanted == 1 ? 0 : j * (count - 1) / (wanted - 1);
    const SpoolPart part = input.spool->load(index_partition(i), index_partition(i));
    const auto entry =
        std::ranges::find(part.entries, i, [](const SpoolEntry& e) { return e.hash.slot_hash; });
    invariant(entry != part.entries.end(), "a sample comes from the input");
    samples.push_back({std::to_string(i), sha256(bytes_of(entry->value))});
  }
  return samples;
}

}  // namespace

std::vector<Sample> take_samples(const Input& input, DatabaseKind kind, const Salt& salt,
                                 DuplicatePolicy policy) {
  if (kind == DatabaseKind::kIndex) return index_samples(input);
  std::vector<Sample> samples;
  for (const auto& [slot_hash, key] : input.sample_keys) {
    const KeyHash hash = key_hash(salt, key);
    samples.push_back(
        sample_of(input, key, shard_of(hash.shard_hash, Spool::kPartitions), hash, policy));
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
      if (!key || !value || value->size() != 32) throw BadInput("the samples are malformed");
      Sample sample{*key, {}};
      std::ranges::copy(*value, sample.value.begin());
      samples.push_back(std::move(sample));
    }
  } catch (const json::exception& error) {
    throw BadInput(std::string("the samples are malformed: ") + error.what());
  }
  return samples;
}

}  // namespace blindfuse
