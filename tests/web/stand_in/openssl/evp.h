// What the tests' reference has from OpenSSL, where there is none: the browser client's own, which
// web_crypto_test holds against the published examples.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "client/web/crypto/chacha20_lanes.h"
#include "client/web/crypto/sha256_portable.h"
#include "src/arithmetic/little_endian.h"

struct EVP_MD {};
struct EVP_CIPHER {};
struct EVP_CIPHER_CTX {
  blindfuse::ChaChaKey key{};
  uint64_t nonce = 0;
};

inline const EVP_MD* EVP_sha256() { return nullptr; }

inline int EVP_Digest(const void* data, size_t size, uint8_t* digest, unsigned int* length,
                      const EVP_MD*, void*) {
  blindfuse::web::Sha256Portable hash;
  hash.update({static_cast<const uint8_t*>(data), size});
  const std::array<uint8_t, 32> result = hash.finish();
  std::copy(result.begin(), result.end(), digest);
  *length = static_cast<unsigned int>(result.size());
  return 1;
}

inline const EVP_CIPHER* EVP_chacha20() { return nullptr; }
inline EVP_CIPHER_CTX* EVP_CIPHER_CTX_new() { return new EVP_CIPHER_CTX; }
inline void EVP_CIPHER_CTX_free(EVP_CIPHER_CTX* context) { delete context; }

// Counters and the first 4 bytes of nonces are zero.
inline int EVP_EncryptInit_ex(EVP_CIPHER_CTX* context, const EVP_CIPHER*, void*, const uint8_t* key,
                              const uint8_t* counter_and_nonce) {
  std::copy_n(key, context->key.size(), context->key.begin());
  context->nonce = blindfuse::load_le<uint64_t>(counter_and_nonce + 8);
  return blindfuse::load_le<uint64_t>(counter_and_nonce) == 0 ? 1 : 0;
}

inline int EVP_EncryptUpdate(EVP_CIPHER_CTX* context, uint8_t* out, int* written, const uint8_t* in,
                             int size) {
  const auto count = static_cast<size_t>(size);
  std::vector<uint32_t> words(count / 4 + 1);
  blindfuse::web::keystream(context->key, context->nonce, words);
  for (size_t i = 0; i < count; ++i) {
    out[i] = static_cast<uint8_t>(in[i] ^ words[i / 4] >> (8 * (i % 4)));
  }
  *written = size;
  return 1;
}
