// SHA-256 (FIPS 180-4) in plain C++.
//
// An implementation of our own, because no package of Debian provides it for WebAssembly. The
// browser's is asynchronous, and the client library does not wait. It is compared with OpenSSL's in
// tests/client/web_crypto_test.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace blindfuse::web {

class Sha256Portable {
 public:
  Sha256Portable() { reset(); }

  void update(std::span<const uint8_t> bytes);
  // The digest of everything since the start or the last finish(); starts again.
  std::array<uint8_t, 32> finish();

 private:
  void reset();
  void compress(const uint8_t* block);

  std::array<uint32_t, 8> state_;
  std::array<uint8_t, 64> block_;  // its first length_ % 64 bytes
  uint64_t length_;
};

}  // namespace blindfuse::web
