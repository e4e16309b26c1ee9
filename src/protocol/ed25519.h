// Verifies Ed25519 signatures (RFC 8032), by OpenSSL or, in builds without it, by the browser
// (client/web/crypto).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "src/base/errors.h"

namespace blindfuse {

using PublicKey = std::array<uint8_t, 32>;
using Signature = std::array<uint8_t, 64>;

// The signature cannot be verified here: a browser may not know Ed25519.
class CannotVerify : public InputError {
 public:
  using InputError::InputError;
};

// True if `signature` is that of `signer` for `message`. False also if `signer` is not a valid
// public key. Throws CannotVerify.
bool verify_ed25519(const PublicKey& signer, std::string_view message, const Signature& signature);

}  // namespace blindfuse
