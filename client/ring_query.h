// Queries for packed responses (docs/PARAMETERS.md, section 6): under a ring secret, with the
// packing keys that belong to it.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "client/prepared_query.h"
#include "client/secret.h"
#include "src/ring/public_polynomials.h"
#include "src/system/random.h"

namespace blindfuse {

// A query but for the key, and packing keys under the same secret, which serves this one query and
// nothing else.
class PreparedRingQuery {
 public:
  PreparedRingQuery(PreparedQuery query, std::vector<uint8_t> packing_keys)
      : query_(std::move(query)), packing_keys_(std::move(packing_keys)) {}

  size_t row_count() const { return query_.row_count(); }

  // As PreparedQuery::encrypt, and throws as it does; moves the packing keys, as they are sent, to
  // `packing_keys`.
  [[nodiscard]] DecodingSecret encrypt(std::span<const uint32_t> rows, uint32_t query_bits,
                                       std::span<uint8_t> query,
                                       std::vector<uint8_t>& packing_keys) &&;

 private:
  PreparedQuery query_;
  std::vector<uint8_t> packing_keys_;
};

// b_j = s a_j + e_j for every block of 2048 rows, and the packing keys: for g = 5 and g = -1 and
// digit k, -s w + e + g(s) gadget(k) modulo the packing modulus, at the points of RingTransform. s
// and e are ternary and fresh. row_count is a positive multiple of 2048. Throws what `random`
// throws.
PreparedRingQuery prepare_ring_query(const ring::PublicPolynomials& polynomials, uint32_t row_count,
                                     const RandomSource& random);

// The bytes of a packed response's columns: round((body - s mask) 256 / Q). mask and body:
// coefficients modulo the packing modulus. The secret may serve all packs of its response. Throws
// std::logic_error when it was moved away.
class RingDecoder {
 public:
  explicit RingDecoder(DecodingSecret secret);
  void decode(ring::Polynomial mask, ring::Polynomial body,
              std::span<uint8_t, ring::kDimension> bytes) const;
  // body - s mask: Q / 256 times the bytes, and noise. Tells of the secret: to be wiped.
  void phases(ring::Polynomial mask, ring::Polynomial body, ring::MutablePolynomial out) const;

 private:
  SecretBuffer<uint32_t> secret_;  // at the points
};

}  // namespace blindfuse
