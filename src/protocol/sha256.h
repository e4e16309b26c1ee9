// SHA-256 (FIPS 180-4), by OpenSSL or, in builds without it, by client/web/crypto.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace blindfuse {

using Sha256Digest = std::array<uint8_t, 32>;

// Hashes a byte string given in pieces. One thread at a time.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(std::span<const uint8_t> bytes);
  void update(std::string_view bytes);

  // Returns the digest of all bytes since the start or the last finish(), and starts again.
  Sha256Digest finish();

 private:
  struct Context;  // whose it is, only the source knows
  Context* context_;
};

Sha256Digest sha256(std::span<const uint8_t> bytes);

}  // namespace blindfuse
