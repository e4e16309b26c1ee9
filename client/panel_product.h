// Multiplies secrets with one panel of the public matrix. This is nearly all the work of preparing
// a query.
#pragma once

#include <cstdint>
#include <span>

#include "client/secret_product.h"
#include "src/protocol/public_matrix.h"

namespace blindfuse {

// words[i][c] += sum over k of factors[i][k] * A[k][64 j + c], for c = 0 .. 63, modulo 2^32.
//
// `panel` has a.panel_words() words, which are overwritten. WebAssembly has another implementation
// (client/web/crypto/panel_product.cpp), in which the panel is never stored.
void add_panel_products(const PublicMatrix& a, uint64_t j, std::span<const SecretFactor> factors,
                        std::span<uint32_t* const> words, std::span<uint32_t> panel);

}  // namespace blindfuse
