// What src/protocol/sha256.cpp and src/protocol/chacha20.cpp have from OpenSSL, where there is no
// OpenSSL.
#include <utility>

#include "client/web/crypto/chacha20_lanes.h"
#include "client/web/crypto/sha256_portable.h"
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

}  // namespace blindfuse
