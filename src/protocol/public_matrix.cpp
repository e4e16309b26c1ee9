#include "src/protocol/public_matrix.h"

#include "src/base/errors.h"
#include "src/protocol/chacha20.h"

namespace blindfuse {

PublicMatrix::PublicMatrix(const MatrixSeed& seed, uint32_t dimension)
    : seed_(seed), dimension_(dimension) {}

void PublicMatrix::fill_panel(uint64_t j, std::span<uint32_t> panel) const {
  invariant(panel.size() == panel_words(), "a panel has 64 n words");
  chacha20_keystream(seed_, j, panel);
}

}  // namespace blindfuse
