#include "src/protocol/ed25519.h"

#include <openssl/err.h>
#include <openssl/evp.h>

#include <memory>
#include <new>

namespace blindfuse {

bool verify_ed25519(const PublicKey& signer, std::string_view message, const Signature& signature) {
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, signer.data(), signer.size()),
      EVP_PKEY_free);
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        EVP_MD_CTX_free);
  if (!key || !context) throw std::bad_alloc();
  const bool is_right =
      EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
      EVP_DigestVerify(context.get(), signature.data(), signature.size(),
                       reinterpret_cast<const uint8_t*>(message.data()), message.size()) == 1;
  // Other code on this thread would take errors that are left there for its own.
  ERR_clear_error();
  return is_right;
}

}  // namespace blindfuse
