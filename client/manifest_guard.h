// Which manifests a client takes: by their signature (docs/PROTOCOL.md, section 2, Signature), and
// by what it has seen of the server before.
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

  // With ClientOptions::server_key: SignatureError for a manifest that is not signed, signed by
  // another key, wrongly signed, older than the newest one seen of that key, or another than the
  // one seen of its number. Without: SignatureError for one that is wrongly signed; the rest is for
  // status()->warning.
  //
  // Remembers what it takes before it returns, and throws what SeenSignersFile does. Sends nothing.
  void take(const ParsedManifest& parsed);

  // Of the last manifest that was taken.
  const std::shared_ptr<const SignerStatus>& status() const { return status_; }

  // What is remembered, for those who keep it elsewhere, too.
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
