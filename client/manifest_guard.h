// Decides which manifests a client accepts: by their signature (docs/PROTOCOL.md, section 2,
// Signature), and by the manifests that it has seen of the server before.
#pragma once

#include <blindfuse/client_options.h>
#include <blindfuse/results.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "src/protocol/manifest.h"

namespace blindfuse {

// A manifest that a client has seen.
struct SeenManifest {
  uint64_t sequence = 0;
  uint64_t time = 0;    // seconds since 1970 UTC
  std::string content;  // SHA-256 of what was signed, in hex

  bool operator==(const SeenManifest&) const = default;
};

// The manifests that a client has seen of one server: their signers, and the newest of each.
struct SeenSigners {
  // The public key, in hex, that signed the first manifest, or that was asked for last. Empty:
  // none.
  std::string signer;
  std::map<std::string, SeenManifest> newest;  // by public key

  // Adds the newer entries of `other`, and its signer if there is none here.
  void merge(const SeenSigners& other);

  bool operator==(const SeenSigners&) const = default;
};

// The text is JSON.
std::string serialize_seen_signers(const SeenSigners& seen);
// Throws InputError if the text is not one of serialize_seen_signers().
SeenSigners parse_seen_signers(std::string_view text);

// The file of the seen signers, which lies next to the hints. All clients of one user share it.
class SeenSignersFile {
 public:
  static constexpr const char* kName = "signers.json";

  // `folder` is that of the server's hints, and exists.
  explicit SeenSignersFile(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // The content of the file; empty if there is no file. Throws CacheError if it is damaged, and
  // InputError or ResourceError if it cannot be read.
  SeenSigners read() const;

  // Reads the file, lets `change` alter its content, and writes it, durably and atomically, if
  // anything changed. Clients take turns, so that none loses an entry that another has written.
  // Throws the errors of read() and of `change`, and then writes nothing. Throws ResourceError if
  // it cannot be written.
  void update(const std::function<void(SeenSigners&)>& change) const;

 private:
  std::filesystem::path folder_;
};

class ManifestGuard {
 public:
  // `folder` is that of the server's hints, and exists. `address` names the server in messages.
  ManifestGuard(std::filesystem::path folder, std::string address, const ClientOptions& options);

  // Throws SignatureError for a manifest that is wrongly signed. With ClientOptions::server_key,
  // also for one that is not signed, signed by another key, older than the newest one seen of that
  // key, or different from the one seen of its number; otherwise status()->warning reports these
  // cases.
  //
  // Stores what it accepts before it returns, and throws the errors of SeenSignersFile. Sends
  // nothing.
  void take(const ParsedManifest& parsed);

  // The status of the last manifest that was accepted.
  const std::shared_ptr<const SignerStatus>& status() const { return status_; }

  // The stored signers, for callers that also store them elsewhere.
  const SeenSignersFile& seen() const { return file_; }

 private:
  enum class Order { kNewer, kSame, kOlder, kOtherOfSameNumber };
  static Order order_of(const SeenManifest& now, const SeenManifest& newest);

  bool check(const ParsedManifest& parsed) const;
  std::string note(SeenSigners& seen, const std::string& signer, const SeenManifest& now) const;

  const SeenSignersFile file_;
  const std::string address_;
  const std::string key_;  // empty: any
  const bool allow_rollback_;
  std::shared_ptr<const SignerStatus> status_ = std::make_shared<SignerStatus>();
};

}  // namespace blindfuse
