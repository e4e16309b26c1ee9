// client/panel_product.cpp for vectors of 128 bits: the keystream takes nearly all of the time, and
// storing a panel and reading it again would only add to that.
#include "client/panel_product.h"

#include <vector>

#include "client/web/crypto/chacha20_lanes.h"
#include "src/base/errors.h"

namespace blindfuse {

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
