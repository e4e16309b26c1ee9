// Implements, without OpenSSL, the functions of src/protocol/sha256.cpp and
// src/protocol/chacha20.cpp, and those of client/panel_product.cpp for vectors of 128 bits.
#include <utility>
#include <vector>

#include "client/secret_product.h"
#include "client/web/crypto/chacha20_lanes.h"
#include "client/web/crypto/sha256_portable.h"
#include "src/base/errors.h"
#include "src/protocol/chacha20.h"
#include "src/protocol/sha256.h"

namespace blindfuse {

struct Sha256::Context : web::Sha256Portable {};

Sha256::Sha256() : context_(new Context) {}

Sha256::~Sha256() { delete context_; }

Sha256::Sha256(Sha256&& other) noexcept : context_(std::exchange(other.context_, nullptr)) {}

Sha256& Sha256::operator=(Sha256&& other) noexcept {
  std::swap(context_, other.context_);
  return *this;
}

void Sha256::update(std::span<const uint8_t> bytes) { context_->update(bytes); }

void Sha256::update(std::string_view bytes) {
  update(std::span(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
}

Sha256Digest Sha256::finish() { return context_->finish(); }

Sha256Digest sha256(std::span<const uint8_t> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

void chacha20_keystream(const ChaChaKey& key, uint64_t nonce, std::span<uint32_t> words) {
  web::keystream(key, nonce, words);
}

// The keystream takes nearly all of the time. Storing a panel and reading it again would only add
// to that.
void add_panel_products(const PublicMatrix& a, uint64_t j, std::span<const SecretFactor> factors,
                        std::span<uint32_t* const> words, std::span<uint32_t>) {
  invariant(factors.size() == words.size(), "a product for every secret");
  std::vector<web::MaskedSecret> secrets;
  secrets.reserve(factors.size());
  for (const SecretFactor& factor : factors) {
    invariant(factor.dimension() == a.dimension(), "secrets fit the public matrix");
    secrets.push_back({factor.flip(), factor.keep()});
  }
  web::add_keystream_products(a.seed(), j, a.dimension(), secrets, words);
  for (size_t i = 0; i < factors.size(); ++i) {
    for (uint32_t c = 0; c < kPanelRows; ++c) words[i][c] += factors[i].minus_ones();
  }
}

}  // namespace blindfuse
