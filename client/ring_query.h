// Queries for packed responses (docs/PARAMETERS.md, section 6): under a ring secret, with the
// packing keys that belong to it.
#pragma once

#include <blindfuse/progress.h>

#include <cstdint>
#include <span>
#include <vector>

#include "client/prepared_query.h"
#include "client/secret.h"
#include "src/ring/public_polynomials.h"
#include "src/system/random.h"

namespace blindfuse {

// b_j = s a_j + e_j for every block of 2048 rows, and the packing keys: for g = 5 and g = -1 and
// digit k, -s w + e + g(s) gadget(k) modulo the packing modulus, at the points of RingTransform. s
// and e are ternary, and fresh for each of `count` queries; row_count is a positive multiple of
// 2048.
//
// One pass over the blocks, by the calling thread: each a_j is expanded and transformed once.
// `random` gives s and e of one query after another, and then their keys' errors in the same order.
// Throws Cancelled, and what `random` throws.
std::vector<PreparedQuery> prepare_ring_queries(const ring::PublicPolynomials& polynomials,
                                                uint32_t row_count, size_t count,
                                                const RandomSource& random,
                                                const ProgressCallback& progress = {});

PreparedQuery prepare_ring_query(const ring::PublicPolynomials& polynomials, uint32_t row_count,
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
