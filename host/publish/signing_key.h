// The private key that signs manifests (Ed25519), and its file: PKCS #8 in PEM, as OpenSSL writes
// it, too.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "src/protocol/ed25519.h"
#include "src/protocol/manifest.h"
#include "src/system/random.h"

namespace blindfuse {

class SigningKey {
 public:
  static SigningKey make(const RandomSource& random);

  // Throws InputError if the file cannot be read, or does not hold such a key without a password.
  static SigningKey read(const std::filesystem::path& file);

  SigningKey(SigningKey&&) noexcept;
  ~SigningKey();

  const PublicKey& public_key() const { return public_key_; }

  // Makes a file that only its owner may read, durably. Throws InputError if anything has the name
  // already, or if the file cannot be made. Throws ResourceError if it cannot be written. No file
  // is left after an error.
  void write(const std::filesystem::path& file) const;

  Signature sign(std::string_view message) const;

  // The signature of a manifest as number `sequence`, made at `time`.
  ManifestSignature sign(const Manifest& manifest, uint64_t sequence, uint64_t time) const;

 private:
  struct Key;  // OpenSSL's

  explicit SigningKey(std::unique_ptr<Key> key);

  std::unique_ptr<Key> key_;
  PublicKey public_key_{};
};

}  // namespace blindfuse
