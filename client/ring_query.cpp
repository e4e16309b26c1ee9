#include "client/ring_query.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "src/errors.h"
#include "src/little_endian.h"
#include "src/ring/automorphism.h"
#include "src/ring/exact_products.h"
#include "src/ring/gadget.h"
#include "src/ring/modulus_switch.h"
#include "src/ring/ring_transform.h"

namespace blindfuse {
namespace {

using ring::kDimension;
using ring::MutablePolynomial;
using ring::Polynomial;
using Coefficients = std::array<uint32_t, kDimension>;

MutablePolynomial polynomial(SecretBuffer<uint32_t>& buffer) {
  return MutablePolynomial(buffer.span().data(), kDimension);
}
Polynomial polynomial(const SecretBuffer<uint32_t>& buffer) {
  return Polynomial(buffer.span().data(), kDimension);
}

const ring::RingTransform& packing_transform() {
  static const auto made = ring::portable_transform(ring::kPackingModulus);
  return *made;
}

// Ternary words modulo 2^32, modulo the field's prime, without a branch on them.
void to_field(std::span<const uint32_t> ternary, const ring::PrimeField& field,
              MutablePolynomial out) {
  for (size_t i = 0; i < kDimension; ++i) {
    const uint32_t sign = ternary[i] >> 31;
    out[i] = ternary[i] + ((0u - sign) & field.modulus());
  }
}

// Fresh ternary numbers at the points.
SecretBuffer<uint32_t> ternary_values(const RandomSource& random) {
  SecretBuffer<uint32_t> values(kDimension);
  sample_ternary(random, values.span());
  to_field(values.span(), packing_transform().field(), polynomial(values));
  packing_transform().forward(polynomial(values));
  return values;
}

// values: the secret's at the points.
std::vector<uint8_t> packing_keys(const ring::PublicPolynomials& polynomials,
                                  const SecretBuffer<uint32_t>& values,
                                  const RandomSource& random) {
  const ring::PrimeField& field = packing_transform().field();
  std::vector<uint8_t> bytes;
  bytes.reserve(4 * ring::kKeys * ring::kDigits * kDimension);
  constexpr std::array<std::pair<ring::KeyIndex, ring::Automorphism>, ring::kKeys> kAll = {{
      {ring::KeyIndex::kFive, {1, false}},
      {ring::KeyIndex::kMinusOne, {0, true}},
  }};
  for (const auto& [key, automorphism] : kAll) {
    SecretBuffer<uint32_t> moved(kDimension);
    ring::apply(automorphism, polynomial(values), polynomial(moved));
    for (size_t k = 0; k < ring::kDigits; ++k) {
      Coefficients mask;
      polynomials.fill_key_mask(key, k, mask);
      const SecretBuffer<uint32_t> error = ternary_values(random);
      for (size_t i = 0; i < kDimension; ++i) {
        const uint32_t masked = field.multiply(values[i], mask[i]);
        const uint32_t digit = field.multiply(moved[i], ring::gadget(k));
        const uint32_t word = field.add(field.subtract(error[i], masked), digit);
        bytes.resize(bytes.size() + 4);
        store_le(bytes.data() + bytes.size() - 4, word);
      }
    }
  }
  return bytes;
}

}  // namespace

PreparedRingQuery prepare_ring_query(const ring::PublicPolynomials& polynomials, uint32_t row_count,
                                     const RandomSource& random) {
  invariant(row_count > 0 && row_count % kDimension == 0, "rows are blocks of 2048");
  SecretBuffer<uint32_t> secret(kDimension);
  sample_ternary(random, secret.span());
  SecretBuffer<uint32_t> masked(row_count);
  sample_ternary(random, masked.span());

  const ring::ExactProducts products;
  SecretBuffer<ring::PairOfValues> values(2);  // the secret's, and a product
  products.forward_words(polynomial(secret), values[0]);
  Coefficients block;
  SecretBuffer<uint32_t> product(kDimension);
  ring::PairOfValues public_values;
  for (uint32_t j = 0; j < row_count / kDimension; ++j) {
    polynomials.fill_block(j, block);
    products.forward_words(block, public_values);
    values[1] = {};
    products.add_product(public_values, values[0], values[1]);
    products.to_words(values[1], polynomial(product));
    for (size_t i = 0; i < kDimension; ++i) masked[j * kDimension + i] += product[i];
  }

  SecretBuffer<uint32_t> at_points(kDimension);
  to_field(secret.span(), packing_transform().field(), polynomial(at_points));
  packing_transform().forward(polynomial(at_points));
  std::vector<uint8_t> keys = packing_keys(polynomials, at_points, random);
  return {PreparedQuery(std::move(secret), std::move(masked)), std::move(keys)};
}

DecodingSecret PreparedRingQuery::encrypt(std::span<const uint32_t> rows, uint32_t query_bits,
                                          std::span<uint8_t> query,
                                          std::vector<uint8_t>& packing_keys) && {
  DecodingSecret secret = std::move(query_).encrypt(rows, query_bits, query);
  packing_keys = std::exchange(packing_keys_, {});
  return secret;
}

RingDecoder::RingDecoder(DecodingSecret secret) : secret_(std::move(secret).take()) {
  invariant(secret_.size() == kDimension, "a ring secret has 2048 words");
  to_field(secret_.span(), packing_transform().field(), polynomial(secret_));
  packing_transform().forward(polynomial(secret_));
}

void RingDecoder::decode(Polynomial mask, Polynomial body,
                         std::span<uint8_t, kDimension> bytes) const {
  SecretBuffer<uint32_t> found(kDimension);
  phases(mask, body, polynomial(found));
  for (size_t c = 0; c < kDimension; ++c) bytes[c] = ring::nearest_byte(found[c]);
}

void RingDecoder::phases(Polynomial mask, Polynomial body, MutablePolynomial out) const {
  if (secret_.empty()) throw std::logic_error("this decoder was moved away");
  const ring::PrimeField& field = packing_transform().field();
  std::copy(mask.begin(), mask.end(), out.begin());
  packing_transform().forward(out);
  for (size_t i = 0; i < kDimension; ++i) out[i] = field.multiply(out[i], secret_[i]);
  packing_transform().inverse(out);
  for (size_t c = 0; c < kDimension; ++c) out[c] = field.subtract(body[c], out[c]);
}

}  // namespace blindfuse
