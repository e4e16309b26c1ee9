#include "client/secret_product.h"

#include <cstring>

#include "src/base/errors.h"

namespace blindfuse {
namespace {

// Sixteen words; the compiler splits them where registers are narrower.
using Lanes [[gnu::vector_size(64)]] = uint32_t;
constexpr size_t kLaneWords = 16;

// Computes one tile: the products of kFactors secrets with kVectors * 16 columns of the panel, held
// in registers over all k.
template <size_t kFactors, size_t kVectors>
[[gnu::always_inline]] inline void add_tile(const uint32_t* panel, const SecretFactor* factors,
                                            uint32_t* const* words, size_t column) {
  Lanes sums[kFactors][kVectors] = {};
  const uint32_t* flips[kFactors];
  const uint32_t* keeps[kFactors];
  for (size_t i = 0; i < kFactors; ++i) flips[i] = factors[i].flip(), keeps[i] = factors[i].keep();
  const size_t dimension = factors[0].dimension();
  for (size_t k = 0; k < dimension; ++k) {
    Lanes row[kVectors];
    std::memcpy(row, panel + k * kPanelRows + column, sizeof row);
#pragma GCC unroll 4
    for (size_t i = 0; i < kFactors; ++i) {
      const Lanes flip = Lanes{} + flips[i][k];
      const Lanes keep = Lanes{} + keeps[i][k];
#pragma GCC unroll 4
      for (size_t v = 0; v < kVectors; ++v) sums[i][v] += (row[v] ^ flip) & keep;
    }
  }
  for (size_t i = 0; i < kFactors; ++i) {
    for (size_t v = 0; v < kVectors; ++v) {
      uint32_t* out = words[i] + column + v * kLaneWords;
      Lanes total;
      std::memcpy(&total, out, sizeof total);
      total += sums[i][v] + factors[i].minus_ones();
      std::memcpy(out, &total, sizeof total);
    }
  }
}

// All factors against all 64 columns, in tiles of at most kFactors secrets.
template <size_t kFactors, size_t kVectors>
[[gnu::always_inline]] inline void add_tiles(const uint32_t* panel,
                                             std::span<const SecretFactor> factors,
                                             uint32_t* const* words) {
  for (size_t column = 0; column < kPanelRows; column += kVectors * kLaneWords) {
    size_t i = 0;
    for (; i + kFactors <= factors.size(); i += kFactors) {
      add_tile<kFactors, kVectors>(panel, &factors[i], words + i, column);
    }
    for (; i < factors.size(); ++i) {
      add_tile<1, kVectors>(panel, &factors[i], words + i, column);
    }
  }
}

using AddProducts = void (*)(const uint32_t*, std::span<const SecretFactor>, uint32_t* const*);

void add_portable(const uint32_t* panel, std::span<const SecretFactor> factors,
                  uint32_t* const* words) {
  add_tiles<2, 1>(panel, factors, words);
}

// Tiles are as large as the registers allow: sixteen accumulators of 512 bits, eight of 256.
#if defined(__x86_64__)
[[gnu::target("avx512f")]] void add_avx512(const uint32_t* panel,
                                           std::span<const SecretFactor> factors,
                                           uint32_t* const* words) {
  add_tiles<4, 4>(panel, factors, words);
}

[[gnu::target("avx2")]] void add_avx2(const uint32_t* panel, std::span<const SecretFactor> factors,
                                      uint32_t* const* words) {
  add_tiles<2, 2>(panel, factors, words);
}
#endif

AddProducts choose() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return add_avx512;
  if (__builtin_cpu_supports("avx2")) return add_avx2;
#endif
  return add_portable;
}

}  // namespace

SecretFactor::SecretFactor(std::span<const uint32_t> secret)
    : flip_(secret.size()), keep_(secret.size()) {
  for (size_t k = 0; k < secret.size(); ++k) {
    const uint32_t negative = secret[k] >> 31;
    flip_[k] = 0u - negative;
    keep_[k] = 0u - (secret[k] & 1);
    minus_ones_ += negative;
  }
}

uint32_t secret_product(const SecretFactor& factor, std::span<const uint32_t> column) {
  invariant(column.size() == factor.dimension(), "the secret fits the column");
  const uint32_t* flip = factor.flip();
  const uint32_t* keep = factor.keep();
  uint32_t sum = factor.minus_ones();
  for (size_t k = 0; k < column.size(); ++k) sum += (column[k] ^ flip[k]) & keep[k];
  return sum;
}

void add_secret_products(std::span<const uint32_t> panel, std::span<const SecretFactor> factors,
                         std::span<uint32_t* const> words) {
  static const AddProducts add = choose();
  invariant(factors.size() == words.size(), "a product for every secret");
  for (const SecretFactor& factor : factors) {
    invariant(panel.size() == factor.dimension() * kPanelRows, "secrets fit the public matrix");
  }
  add(panel.data(), factors, words.data());
}

}  // namespace blindfuse
