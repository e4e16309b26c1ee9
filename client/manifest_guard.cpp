#include "client/manifest_guard.h"

#include <blindfuse/errors.h>
#include <nlohmann/json.hpp>

#include <utility>

#include "client/cache_folder.h"
#include "src/base/hex.h"
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

std::string not_signed(const std::string& address, const std::string& key) {
  return "the database of " + address + " is not signed; the key " + key +
         " (--server-key) has to have signed it. Do not use it, and ask its operator";
}

std::string signed_by_another(const std::string& address, const std::string& key,
                              const std::string& signer) {
  return "the database of " + address + " is signed by another key: by " + signer + ", not by " +
         key +
         " (--server-key). Ask its operator whether the key was changed, but not through this "
         "server, and use the new key";
}

std::string wrongly_signed(const std::string& address, const std::string& signer) {
  return "the signature of the database of " + address + " is wrong: " + signer +
         " did not sign what the server sent. Try again. If that fails, ask its operator";
}

std::string rolled_back(const std::string& address, const SeenManifest& now,
                        const SeenManifest& newest) {
  return "the database of " + address + " was rolled back: it is " +
         numbered(now.sequence, now.time) + ", and " + numbered(newest.sequence, newest.time) +
         " was seen before. Ask its operator whether that is intended; if so, allow it "
         "(--allow-rollback)";
}

std::string equivocation_warning(const std::string& address, const SeenManifest& now,
                                 const SeenManifest& newest) {
  return "the server at " + address +
         " has two different manifests with the same sequence number: " +
         numbered(now.sequence, now.time) + ", and another, " +
         numbered(newest.sequence, newest.time) +
         ", was seen before. It may show clients different databases. Ask its operator; the next "
         "build gets a new number";
}

std::string signer_changed(const std::string& address, const std::string& before,
                           const std::string& signer) {
  return "the database of " + address + " was signed by " + before + ", and now is by " + signer +
         ". Ask its operator whether the key was changed, but not through this server, and accept "
         "the new key once (--server-key)";
}

std::string signer_gone(const std::string& address, const std::string& before) {
  return "the database of " + address + " was signed by " + before +
         ", and now is not signed. Ask its operator why. A client that names the key "
         "(--server-key) refuses an unsigned database";
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

ManifestGuard::ManifestGuard(std::filesystem::path folder, std::string address,
                             const ClientOptions& options)
    : file_(std::move(folder)),
      address_(std::move(address)),
      key_(options.server_key.value_or("")),
      allow_rollback_(options.allow_rollback) {}

void ManifestGuard::take(const ParsedManifest& parsed) {
  SignerStatus status;
  status.is_checked = check(parsed);
  if (!parsed.signature) {
    const std::string before = file_.read().signer;
    if (!before.empty()) status.warning = signer_gone(address_, before);
    status_ = std::make_shared<SignerStatus>(std::move(status));
    return;
  }
  status.signer = encode_hex(parsed.signature->signer);
  status.sequence = parsed.signature->sequence;
  status.time = parsed.signature->time;
  if (status.is_checked) {
    const auto* text = reinterpret_cast<const uint8_t*>(parsed.signed_text.data());
    const SeenManifest now{status.sequence, status.time,
                           encode_hex(sha256({text, parsed.signed_text.size()}))};
    file_.update([&](SeenSigners& seen) { status.warning = note(seen, status.signer, now); });
  }
  status_ = std::make_shared<SignerStatus>(std::move(status));
}

// True if a signature is there, and was found to be right.
bool ManifestGuard::check(const ParsedManifest& parsed) const {
  if (!parsed.signature) {
    if (!key_.empty()) throw SignatureError(not_signed(address_, key_));
    return false;
  }
  const std::string signer = encode_hex(parsed.signature->signer);
  if (!key_.empty() && signer != key_) {
    throw SignatureError(signed_by_another(address_, key_, signer));
  }
  try {
    if (!is_rightly_signed(parsed)) throw SignatureError(wrongly_signed(address_, signer));
  } catch (const CannotVerify&) {
    // The caller named no key, and so did not ask for the check.
    if (key_.empty()) return false;
    throw;
  }
  return true;
}

ManifestGuard::Order ManifestGuard::order_of(const SeenManifest& now, const SeenManifest& newest) {
  if (now.sequence > newest.sequence) return Order::kNewer;
  if (now.sequence < newest.sequence) return Order::kOlder;
  return now == newest ? Order::kSame : Order::kOtherOfSameNumber;
}

// Gives the warning, and remembers a manifest without one. The highest number stays, whatever is
// allowed: it is what later clients have to compare with.
std::string ManifestGuard::note(SeenSigners& seen, const std::string& signer,
                                const SeenManifest& now) const {
  if (key_.empty() && !seen.signer.empty() && seen.signer != signer) {
    return signer_changed(address_, seen.signer, signer);
  }
  const auto found = seen.newest.find(signer);
  const Order order = found == seen.newest.end() ? Order::kNewer : order_of(now, found->second);
  std::string trouble;
  if (order == Order::kOlder && !allow_rollback_) {
    trouble = rolled_back(address_, now, found->second);
  } else if (order == Order::kOtherOfSameNumber) {
    trouble = equivocation_warning(address_, now, found->second);
  }
  if (!trouble.empty()) {
    if (!key_.empty()) throw SignatureError(trouble);
    return trouble;
  }
  seen.signer = signer;
  if (order == Order::kNewer) seen.newest[signer] = now;
  return {};
}

}  // namespace blindfuse
