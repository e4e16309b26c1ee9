// Queries for packed responses under a ring secret, with the secret's packing key
// (docs/PROTOCOL.md, sections 17 and 18; docs/PARAMETERS.md, section 6).
#pragma once

#include <blindfuse/progress.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "client/prepared_query.h"
#include "client/secret.h"
#include "src/arithmetic/packing_table.h"
#include "src/arithmetic/ring/automorphism.h"
#include "src/arithmetic/ring/packing_key_format.h"
#include "src/base/errors.h"
#include "src/protocol/manifest.h"
#include "src/protocol/public_polynomials.h"
#include "src/system/random.h"

namespace blindfuse {

// The masks of all digits, expanded once: 24 KiB.
class KeyMasks {
 public:
  // ring::kDimension values for each digit, as ring::PublicPolynomials::key_masks() has them
  // (src/protocol/public_polynomials.h).
  explicit KeyMasks(std::vector<uint32_t> words) : words_(std::move(words)) {
    invariant(words_.size() == ring::kKeyWords, "a mask for each digit");
  }

  // The mask of digit k: values in the evaluation domain of Ntt.
  ring::Polynomial mask(size_t k) const {
    return ring::Polynomial(words_.data() + k * ring::kDimension, ring::kDimension);
  }

 private:
  std::vector<uint32_t> words_;
};

// Makes queries under the public polynomials of one database: b_j = s a_j + e_j for every block of
// 2048 rows, of every bucket if requests are for several keys. The packing key is, for g = 5 and
// digit k, -s w + e + g(s) gadget(k) modulo the packing modulus, in the evaluation domain of Ntt. s
// and e are ternary, and fresh for each query.
class RingQueryMaker {
 public:
  // The rows of a second level, and the order of its short key; 0: there is none.
  struct Second {
    uint32_t row_count = 0;
    uint32_t key_order = 0;
  };

  // row_count is a positive multiple of 2048: R, the rows of each bucket. Expands the keys' masks
  // w, which all queries share.
  RingQueryMaker(const ring::PublicPolynomials& polynomials, uint32_t row_count,
                 const Second& second, uint32_t bucket_count = 1);
  RingQueryMaker(const ring::PublicPolynomials& polynomials, uint32_t row_count)
      : RingQueryMaker(polynomials, row_count, Second()) {}

  // Makes `count` queries on the calling thread: first their keys, and then their b in one pass
  // over the blocks. Each a_j is expanded and transformed once. `random` gives s, e, the keys'
  // errors and those of the second level of one query after another. Any thread.
  //
  // Reports the rows, of all buckets, that are done in all queries. While it makes keys, it reports
  // none, after each of their polynomials. Throws CancelledError, and the exceptions of `random`.
  std::vector<PreparedQuery> make(size_t count, const RandomSource& random,
                                  const ProgressCallback& progress = {}) const;

 private:
  struct Unfinished;
  void append_packing_key(ring::Polynomial secret, const ring::Automorphism& automorphism,
                          const KeyMasks& masks, const RandomSource& random,
                          const ProgressCallback& progress, std::vector<uint8_t>& bytes) const;
  void add_second_products(std::span<Unfinished> queries) const;
  void add_products(std::span<Unfinished> queries, const ProgressCallback& progress) const;
  void report(const ProgressCallback& progress, uint64_t rows_done) const;
  uint64_t word_count() const { return uint64_t{row_count_} * bucket_count_; }

  ring::PublicPolynomials polynomials_;
  KeyMasks key_masks_;
  uint32_t row_count_;
  Second second_;
  uint32_t bucket_count_;
  KeyMasks short_key_masks_;  // unused where there is no short key
};

// The bytes of a pack's columns: round((body - s mask) 256 / Q). mask and body: coefficients modulo
// the packing modulus, of which the mask has all 2048 and the body those of the columns. The secret
// may serve all packs of its response. Throws std::logic_error if it was moved from.
class RingDecoder {
 public:
  explicit RingDecoder(DecodingSecret secret);
  using Body = std::span<const uint32_t, kPackColumns>;
  void decode(ring::Polynomial mask, Body body, std::span<uint8_t, kPackColumns> bytes) const;
  // body - s mask: Q / 256 times the bytes, and noise. It reveals the secret, and must be wiped.
  void phases(ring::Polynomial mask, Body body, std::span<uint32_t, kPackColumns> out) const;

 private:
  SecretBuffer<uint32_t> secret_;  // at the points
};

// Prepares queries for one database, in the way that its mode requires. Holds the data that all of
// them share. If responses are packed, it is worth keeping for the next queries.
class QueryPreparation {
 public:
  explicit QueryPreparation(const Manifest& manifest);

  // Makes `count` queries in one pass over the public matrix or, if responses are packed, over the
  // public polynomials. The latter use the calling thread alone, as one query takes some ten
  // milliseconds for each bucket. thread_count 0: one a processor. `random` is called only on the
  // calling thread. Throws CancelledError, and the exceptions of `random`.
  std::vector<PreparedQuery> make(size_t count, unsigned thread_count, const RandomSource& random,
                                  const ProgressCallback& progress = {}) const;

 private:
  Manifest manifest_;
  std::optional<RingQueryMaker> ring_;  // where responses are packed
};

// Prepares queries in one pass.
std::vector<PreparedQuery> prepare_queries_for(const Manifest& manifest, size_t count,
                                               unsigned thread_count, const RandomSource& random,
                                               const ProgressCallback& progress = {});

}  // namespace blindfuse
