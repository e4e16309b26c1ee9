// The client's share of the work: ternary secrets times panels of the public matrix.
#pragma once

#include <cstdint>
#include <span>

#include "client/secret.h"
#include "src/protocol/public_matrix.h"

namespace blindfuse {

// A secret s in the form in which it is multiplied.
//
// s x is (x xor flip) and keep, plus one where s = -1: two operations on a vector, neither a
// multiplication nor a branch. The ones are the same for every column and are added up once.
class SecretFactor {
 public:
  // Words -1, 0 or 1 modulo 2^32.
  explicit SecretFactor(std::span<const uint32_t> secret);

  size_t dimension() const { return flip_.size(); }
  const uint32_t* flip() const { return flip_.span().data(); }
  const uint32_t* keep() const { return keep_.span().data(); }
  uint32_t minus_ones() const { return minus_ones_; }

 private:
  SecretBuffer<uint32_t> flip_, keep_;
  uint32_t minus_ones_ = 0;
};

// The sum over k of factor[k] * column[k], modulo 2^32; as many words as the factor's dimension.
uint32_t secret_product(const SecretFactor& factor, std::span<const uint32_t> column);

// words[i][c] += sum over k of factors[i][k] * panel[64 k + c], for c = 0 .. 63, modulo 2^32.
//
// The panel has 64 words for each of the factors' dimension. Each of its words is read once for
// several factors. Several products therefore cost little more than one if making the panel takes
// most of the time.
void add_secret_products(std::span<const uint32_t> panel, std::span<const SecretFactor> factors,
                         std::span<uint32_t* const> words);

// words[i][c] += sum over k of factors[i][k] * A[k][64 j + c], for c = 0 .. 63, modulo 2^32.
//
// `panel` has a.panel_words() words, which are overwritten. WebAssembly has another implementation
// (client/web/crypto/protocol_crypto.cpp), in which the panel is never stored.
void add_panel_products(const PublicMatrix& a, uint64_t j, std::span<const SecretFactor> factors,
                        std::span<uint32_t* const> words, std::span<uint32_t> panel);

}  // namespace blindfuse
