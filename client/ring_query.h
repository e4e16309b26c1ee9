// Queries for packed responses (docs/PROTOCOL.md, sections 17 and 18; docs/PARAMETERS.md, section
// 6): under a ring secret, with the packing keys that belong to it.
#pragma once

#include <blindfuse/progress.h>

#include <cstdint>
#include <span>
#include <vector>

#include "client/prepared_query.h"
#include "client/secret.h"
#include "src/arithmetic/ring/key_masks.h"
#include "src/protocol/public_polynomials.h"
#include "src/system/random.h"

namespace blindfuse {

// Makes queries under the public polynomials of one database: b_j = s a_j + e_j for every block of
// 2048 rows, and the packing keys: for g = 5 and g = -1 and digit k, -s w + e + g(s) gadget(k)
// modulo the packing modulus, at the points of Ntt. s and e are ternary, and fresh for
// each query.
class RingQueryMaker {
 public:
  // row_count is a positive multiple of 2048. Expands the keys' masks w, which all queries share.
  RingQueryMaker(const ring::PublicPolynomials& polynomials, uint32_t row_count);

  // Makes `count` queries by the calling thread: first their keys, and then their b in one pass
  // over the blocks, for which each a_j is expanded and transformed once. `random` gives s, e and
  // the keys' errors of one query after another. Any thread.
  //
  // Reports the rows that are done in all queries, none while it makes keys, after each of their
  // polynomials. Throws CancelledError, and what `random` throws.
  std::vector<PreparedQuery> make(size_t count, const RandomSource& random,
                                  const ProgressCallback& progress = {}) const;

 private:
  struct Unfinished;
  std::vector<uint8_t> packing_keys(std::span<const uint32_t> secret, const RandomSource& random,
                                    const ProgressCallback& progress) const;
  void add_products(std::span<Unfinished> queries, const ProgressCallback& progress) const;
  void report(const ProgressCallback& progress, uint64_t rows_done) const;

  ring::PublicPolynomials polynomials_;
  ring::KeyMasks key_masks_;
  uint32_t row_count_;
};

// One alone.
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
