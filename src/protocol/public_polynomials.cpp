#include "src/protocol/public_polynomials.h"

#include <array>

#include "src/arithmetic/ring/prime_field.h"
#include "src/base/errors.h"

namespace blindfuse::ring {
namespace {

constexpr uint64_t kKeyMasks = uint64_t{1} << 63;
constexpr uint64_t kShortKeyMasks = kKeyMasks + kDigits;
constexpr uint64_t kSecondBlocks = kKeyMasks + (uint64_t{1} << 32);
// A word is at or above the modulus with probability 2^-18.4: that 2048 words in 2112 are not
// enough happens with a probability below 2^-700.
constexpr size_t kWordsDrawn = kDimension + 64;

}  // namespace

void PublicPolynomials::fill_block(uint32_t bucket, uint32_t j, MutablePolynomial words) const {
  chacha20_keystream(seed_, (uint64_t{bucket} << 32) + j, words);
}

std::vector<uint32_t> PublicPolynomials::blocks(uint32_t row_count, uint32_t bucket) const {
  std::vector<uint32_t> words(row_count);
  for (uint32_t j = 0; j < row_count / kDimension; ++j) {
    fill_block(bucket, j, MutablePolynomial(words.data() + j * kDimension, kDimension));
  }
  return words;
}

void PublicPolynomials::fill_values(uint64_t nonce, MutablePolynomial values) const {
  std::array<uint32_t, kWordsDrawn> words;
  chacha20_keystream(seed_, nonce, words);
  size_t filled = 0;
  for (const uint32_t word : words) {
    if (word < kPackingModulus && filled < kDimension) values[filled++] = word;
  }
  invariant(filled == kDimension, "the keystream has enough words below the modulus");
}

void PublicPolynomials::fill_key_mask(size_t k, MutablePolynomial values) const {
  fill_values(kKeyMasks + k, values);
}

std::vector<uint32_t> PublicPolynomials::key_masks() const {
  std::vector<uint32_t> masks(kKeyWords);
  for (size_t k = 0; k < kDigits; ++k) {
    fill_key_mask(k, MutablePolynomial(masks.data() + k * kDimension, kDimension));
  }
  return masks;
}

void PublicPolynomials::fill_short_key_mask(size_t k, MutablePolynomial values) const {
  fill_values(kShortKeyMasks + k, values);
}

std::vector<uint32_t> PublicPolynomials::short_key_masks() const {
  std::vector<uint32_t> masks(kKeyWords);
  for (size_t k = 0; k < kDigits; ++k) {
    fill_short_key_mask(k, MutablePolynomial(masks.data() + k * kDimension, kDimension));
  }
  return masks;
}

void PublicPolynomials::fill_second_block(uint32_t j, MutablePolynomial values) const {
  fill_values(kSecondBlocks + j, values);
}

std::vector<uint32_t> PublicPolynomials::second_blocks(uint32_t row_count) const {
  const size_t count = (row_count + kDimension - 1) / kDimension;
  std::vector<uint32_t> blocks(count * kDimension);
  for (size_t j = 0; j < count; ++j) {
    fill_second_block(static_cast<uint32_t>(j),
                      MutablePolynomial(blocks.data() + j * kDimension, kDimension));
  }
  return blocks;
}

}  // namespace blindfuse::ring
