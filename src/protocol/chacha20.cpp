#include "src/protocol/chacha20.h"

#include <openssl/evp.h>

#include <algorithm>
#include <memory>

#include "src/arithmetic/little_endian.h"
#include "src/base/errors.h"

namespace blindfuse {
namespace {

const EVP_CIPHER* chacha20() {
  static const EVP_CIPHER* const cipher = EVP_CIPHER_fetch(nullptr, "ChaCha20", nullptr);
  invariant(cipher != nullptr, "OpenSSL provides ChaCha20");
  return cipher;
}

}  // namespace

void chacha20_keystream(const ChaChaKey& key, uint64_t nonce, std::span<uint32_t> words) {
  // OpenSSL takes 16 bytes: the block counter (zero), then RFC 8439's nonce.
  std::array<uint8_t, 16> counter_and_nonce{};
  store_le(counter_and_nonce.data() + 8, nonce);
  const std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)> context(
      EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free);
  invariant(context != nullptr, "memory for a cipher context");
  invariant(EVP_EncryptInit_ex2(context.get(), chacha20(), key.data(), counter_and_nonce.data(),
                                nullptr) == 1,
            "ChaCha20 starts");
  std::fill(words.begin(), words.end(), 0u);
  auto* bytes = reinterpret_cast<unsigned char*>(words.data());
  int written = 0;
  invariant(EVP_EncryptUpdate(context.get(), bytes, &written, bytes,
                              static_cast<int>(words.size_bytes())) == 1,
            "ChaCha20 runs");
}

}  // namespace blindfuse
