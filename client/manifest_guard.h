// Decides which manifests a client accepts: by their signature (docs/PROTOCOL.md, section 2,
// Signature), and by the manifests that it has seen of the server before.
#pragma once

#include <blindfuse/client_options.h>
#include <blindfuse/results.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "client/seen_signers.h"
#include "src/protocol/manifest.h"

namespace blindfuse {

class ManifestGuard {
 public:
  // `folder` is that of the server's hints, and exists. `address` names the server in messages.
  ManifestGuard(std::filesystem::path folder, std::string address, const ClientOptions& options);

  // With ClientOptions::server_key: throws SignatureError for a manifest that is not signed, signed
  // by another key, wrongly signed, older than the newest one seen of that key, or different from
  // the one seen of its number. Without: throws SignatureError for one that is wrongly signed.
  // status()->warning reports the other cases.
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
