// Queries for packed responses (docs/PROTOCOL.md, packed responses): under a ring secret, with the
// packing keys that belong to it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "client/prepared_query.h"
#include "client/secret.h"
#include "src/ring/public_polynomials.h"
#include "src/system/random.h"

namespace blindfuse {

// A query but for the key, and packing keys under the same secret, which serves both and nothing
// else.
struct PreparedRingQuery {
  PreparedQuery query;
  std::vector<uint8_t> packing_keys;  // as they are sent
};

// b_j = s a_j + e_j for every block of 2048 rows, and the packing keys: for g = 5 and g = -1 and
// digit k, -s w + e + g(s) gadget(k) modulo the packing modulus, at the points of RingTransform. s
// and e are ternary and fresh. row_count is a multiple of 2048. Throws what `random` throws.
PreparedRingQuery prepare_ring_query(const ring::PublicPolynomials& polynomials, uint32_t row_count,
                                     const RandomSource& random);

// The bytes of a packed response's columns: round((body - s mask) 256 / Q). mask and body:
// coefficients modulo the packing modulus. The secret may serve all packs of its response.
class RingDecoder {
 public:
  explicit RingDecoder(DecodingSecret secret);
  void decode(ring::Polynomial mask, ring::Polynomial body,
              std::span<uint8_t, ring::kDimension> bytes) const;
  // body - s mask: Q / 256 times the bytes, and noise.
  void phases(ring::Polynomial mask, ring::Polynomial body, ring::MutablePolynomial out) const;

 private:
  SecretBuffer<uint32_t> secret_;  // at the points
};

}  // namespace blindfuse
