#include "src/protocol/sha256.h"

#include <openssl/evp.h>

#include <utility>

#include "src/base/errors.h"

namespace blindfuse {
namespace {

// The algorithm is looked up once: that costs more than hashing a short key.
const EVP_MD* algorithm() {
  static const EVP_MD* const md = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  invariant(md != nullptr, "OpenSSL provides SHA-256");
  return md;
}

void start(EVP_MD_CTX* context) {
  invariant(EVP_DigestInit_ex2(context, algorithm(), nullptr) == 1, "SHA-256 starts");
}

}  // namespace

struct Sha256::Context {
  Context() : evp(EVP_MD_CTX_new()) {
    invariant(evp != nullptr, "memory for a hash context");
    start(evp);
  }
  ~Context() { EVP_MD_CTX_free(evp); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  EVP_MD_CTX* const evp;
};

Sha256::Sha256() : context_(new Context) {}

Sha256::~Sha256() { delete context_; }

Sha256::Sha256(Sha256&& other) noexcept : context_(std::exchange(other.context_, nullptr)) {}

Sha256& Sha256::operator=(Sha256&& other) noexcept {
  std::swap(context_, other.context_);
  return *this;
}

void Sha256::update(std::span<const uint8_t> bytes) {
  invariant(EVP_DigestUpdate(context_->evp, bytes.data(), bytes.size()) == 1, "SHA-256 continues");
}

void Sha256::update(std::string_view bytes) {
  update(std::span(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
}

Sha256Digest Sha256::finish() {
  Sha256Digest digest;
  invariant(EVP_DigestFinal_ex(context_->evp, digest.data(), nullptr) == 1, "SHA-256 ends");
  start(context_->evp);
  return digest;
}

Sha256Digest sha256(std::span<const uint8_t> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

}  // namespace blindfuse
