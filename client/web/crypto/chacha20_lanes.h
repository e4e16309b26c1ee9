// ChaCha20's keystream (RFC 8439) on vectors of 128 bits, four blocks at a time, and its product
// with secrets.
//
// An implementation of our own, because no package of Debian provides it for WebAssembly with SIMD.
// OpenSSL has no such target, and its portable C would be several times slower. It uses the
// compiler's vectors, so that the same source is compared with OpenSSL's on a native machine
// (tests/client/web_crypto_test.cpp). No branch and no address depends on secrets.
#pragma once

#include <cstdint>
#include <span>

#include "src/protocol/chacha20.h"

namespace blindfuse::web {

// Computes the keystream of blindfuse::chacha20_keystream().
void keystream(const ChaChaKey& key, uint64_t nonce, std::span<uint32_t> words);

// A secret as SecretFactor has it: s x is ((x xor flip) and keep), plus one where s = -1, which the
// caller adds.
struct MaskedSecret {
  const uint32_t* flip;
  const uint32_t* keep;
};

// words[i][c] += sum over k < dimension of ((x[64 k + c] xor flip[k]) and keep[k]) of secret i, for
// c = 0 .. 63, where x is the keystream. The keystream stays in registers, and is neither stored
// nor reordered.
void add_keystream_products(const ChaChaKey& key, uint64_t nonce, uint32_t dimension,
                            std::span<const MaskedSecret> secrets,
                            std::span<uint32_t* const> words);

}  // namespace blindfuse::web
