#include "client/secret_product.h"

namespace blindfuse {

void add_panel_products(const PublicMatrix& a, uint64_t j, std::span<const SecretFactor> factors,
                        std::span<uint32_t* const> words, std::span<uint32_t> panel) {
  a.fill_panel(j, panel);
  add_secret_products(panel, factors, words);
}

}  // namespace blindfuse
