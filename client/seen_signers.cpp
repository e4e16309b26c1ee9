#include "client/seen_signers.h"

#include <blindfuse/errors.h>

#include <nlohmann/json.hpp>

#include "client/cache_folder.h"
#include "src/protocol/manifest.h"
#include "src/system/file.h"

namespace blindfuse {
namespace {

using nlohmann::json;

constexpr std::string_view kSeenFormat = "blindfuse-signers/1";
constexpr const char* kLockName = "signers.lock";
constexpr uint64_t kSeenBytesMax = 1 << 20;

std::string public_key_in(const json& text) {
  const auto key = text.get<std::string>();
  if (!parse_public_key(key)) throw InputError("not a public key");
  return key;
}

uint64_t integer_in(const json& number) {
  if (!number.is_number_unsigned() || number.get<uint64_t>() > kManifestIntegerMax) {
    throw InputError("not a number of a manifest");
  }
  return number.get<uint64_t>();
}

}  // namespace

void SeenSigners::merge(const SeenSigners& other) {
  if (signer.empty()) signer = other.signer;
  for (const auto& [key, manifest] : other.newest) {
    SeenManifest& ours = newest[key];
    if (manifest.sequence > ours.sequence) ours = manifest;
  }
}

std::string serialize_seen_signers(const SeenSigners& seen) {
  json manifests = json::object();
  for (const auto& [key, manifest] : seen.newest) {
    manifests[key] = {
        {"sequence", manifest.sequence}, {"time", manifest.time}, {"content", manifest.content}};
  }
  const json all = {{"format", kSeenFormat}, {"signer", seen.signer}, {"newest", manifests}};
  return all.dump(2) + "\n";
}

SeenSigners parse_seen_signers(std::string_view text) {
  try {
    const json all = json::parse(text);
    if (all.at("format") != kSeenFormat) throw InputError("another format");
    SeenSigners seen;
    if (all.at("signer") != "") seen.signer = public_key_in(all.at("signer"));
    for (const auto& [key, manifest] : all.at("newest").items()) {
      SeenManifest& newest = seen.newest[public_key_in(key)];
      newest.sequence = integer_in(manifest.at("sequence"));
      newest.time = integer_in(manifest.at("time"));
      newest.content = manifest.at("content").get<std::string>();
      if (!is_epoch_id(newest.content)) throw InputError("not a hash");
    }
    return seen;
  } catch (const json::exception& error) {
    throw InputError(error.what());
  }
}

SeenSigners SeenSignersFile::read() const {
  const std::filesystem::path path = folder_ / kName;
  std::error_code error;
  if (!std::filesystem::exists(path, error) && !error) return {};
  const std::string text = read_file(path, kSeenBytesMax);
  try {
    return parse_seen_signers(text);
  } catch (const InputError&) {
    throw CacheError(path.string() +
                     " is damaged. It records who signed the databases that this client has "
                     "seen. Check the server's public key with its operator, and remove the file");
  }
}

void SeenSignersFile::update(const std::function<void(SeenSigners&)>& change) const {
  const FileDescriptor lock = lock_briefly(folder_ / kLockName);
  const SeenSigners before = read();
  SeenSigners after = before;
  change(after);
  if (after == before) return;
  PendingFile file(folder_);
  file.write(serialize_seen_signers(after));
  file.commit(kName);
}

}  // namespace blindfuse
