#include "src/public_matrix.h"

#include <openssl/evp.h>

#include <algorithm>
#include <memory>

#include "src/errors.h"
#include "src/little_endian.h"

namespace blindfuse {
namespace {

const EVP_CIPHER* chacha20() {
  static const EVP_CIPHER* const cipher = EVP_CIPHER_fetch(nullptr, "ChaCha20", nullptr);
  invariant(cipher != nullptr, "OpenSSL provides ChaCha20");
  return cipher;
}

struct ContextDeleter {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};

}  // namespace

PublicMatrix::PublicMatrix(const MatrixSeed& seed, uint32_t dimension)
    : seed_(seed), dimension_(dimension) {}

void PublicMatrix::fill_panel(uint64_t j, std::span<uint32_t> panel) const {
  invariant(panel.size() == panel_words(), "a panel has 64 n words");
  // OpenSSL's 16 bytes: the block counter (zero), then RFC 8439's nonce, whose last 8 bytes are j.
  std::array<uint8_t, 16> counter_and_nonce{};
  store_le(counter_and_nonce.data() + 8, j);
  const std::unique_ptr<EVP_CIPHER_CTX, ContextDeleter> context(EVP_CIPHER_CTX_new());
  invariant(context != nullptr, "memory for a cipher context");
  invariant(EVP_EncryptInit_ex2(context.get(), chacha20(), seed_.data(), counter_and_nonce.data(),
                                nullptr) == 1,
            "ChaCha20 starts");
  std::fill(panel.begin(), panel.end(), 0u);
  auto* bytes = reinterpret_cast<unsigned char*>(panel.data());
  int written = 0;
  invariant(EVP_EncryptUpdate(context.get(), bytes, &written, bytes,
                              static_cast<int>(panel.size_bytes())) == 1,
            "ChaCha20 runs");
}

}  // namespace blindfuse
