// ChaCha20's keystream (RFC 8439), by OpenSSL or, in builds without it, by client/web/crypto.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace blindfuse {

using ChaChaKey = std::array<uint8_t, 32>;

// Writes the keystream of `key` from block 0 on, as little-endian words. The nonce's last 8 bytes
// are `nonce`, its first 4 are zero. Any thread.
void chacha20_keystream(const ChaChaKey& key, uint64_t nonce, std::span<uint32_t> words);

}  // namespace blindfuse
