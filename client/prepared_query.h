// Queries made ahead of the keys they will ask for (docs/PROTOCOL.md, sections 9 and 17).
//
// Nearly all of a query's cost, s * A + e, does not depend on the key. A secret must serve one
// query only: the types below move but do not copy, and each is consumed by its use.
#pragma once

#include <blindfuse/progress.h>

#include <cstdint>
#include <span>
#include <vector>

#include "client/database_description.h"
#include "client/secret.h"
#include "src/protocol/manifest.h"
#include "src/protocol/public_matrix.h"
#include "src/system/process_token.h"
#include "src/system/random.h"

namespace blindfuse {

// The secret s of a query that was sent. It decodes one response. n words, each -1, 0 or 1 modulo
// 2^32.
class DecodingSecret {
 public:
  explicit DecodingSecret(SecretBuffer<uint32_t> words) : words_(std::move(words)) {}
  DecodingSecret(const DecodingSecret&) = delete;
  DecodingSecret& operator=(const DecodingSecret&) = delete;
  DecodingSecret(DecodingSecret&&) = default;
  DecodingSecret& operator=(DecodingSecret&&) = default;

  // Returns the words and gives up their ownership. Throws std::logic_error if they are gone
  // already.
  SecretBuffer<uint32_t> take() &&;

 private:
  SecretBuffer<uint32_t> words_;
};

// A query's part for a second level, without the row that it asks for: b2' = s a2 + e2 modulo the
// packing modulus, a number for each row, and the order of the short key that goes with it (0:
// there is none).
struct SecondQuery {
  SecretBuffer<uint32_t> words;
  uint32_t key_order = 0;
};

// A secret s and b' = s * A + e, which is a query without the key. If responses are packed, also
// the keys that pack its response under s. It is valid only in the process that made it: a fork
// copies memory, and two queries under one secret would reveal both their rows to the server.
// ProcessToken says which children are recognized.
class PreparedQuery {
 public:
  // maker: the process, from before the secret was drawn, as it may fork before the query is made.
  // seed: of the public matrix, or of the public polynomials. n and B R words. The packing keys as
  // they are sent; none if responses are not packed.
  PreparedQuery(ProcessToken maker, const MatrixSeed& seed, SecretBuffer<uint32_t> secret,
                SecretBuffer<uint32_t> masked, std::vector<uint8_t> packing_keys = {},
                SecondQuery second = {}, uint32_t bucket_count = 1);
  PreparedQuery(const PreparedQuery&) = delete;
  PreparedQuery& operator=(const PreparedQuery&) = delete;
  PreparedQuery(PreparedQuery&&) = default;
  PreparedQuery& operator=(PreparedQuery&&) = default;

  // Writes the query for these rows (each below R; an empty list is a valid query, too) into
  // `query`: bit_sequence_bytes(R, query_bits) bytes, and the packing keys after them. Returns the
  // secret that decodes its answer. Throws std::logic_error if this query was used or moved from
  // before, or was made by another process.
  [[nodiscard]] DecodingSecret encrypt(std::span<const uint32_t> rows, uint32_t query_bits,
                                       std::span<uint8_t> query) &&;

  // Writes the query for places in a database with this layout: one for each bucket. If it has a
  // second level, also writes the numbers for its rows, which ask for the words of the place's
  // shard. The same number of words is added to, whatever is asked for, in the same order of
  // buckets, and the time does not depend on it.
  [[nodiscard]] DecodingSecret encrypt(std::span<const KeyPlace> places, const Layout& layout,
                                       std::span<uint8_t> query) &&;

  // The rows of all buckets together.
  size_t row_count() const { return masked_.size(); }
  // True if the query suits a database: it has the seed, the dimension, the rows, the buckets and
  // the mode for which the query was made. Epochs may share all of these.
  bool is_for(const Manifest& manifest) const;
  // False in a process that was forked since its secret was drawn.
  bool is_of_this_process() const;

 private:
  // Gives up the words, to which `add` adds. Writes them and the packing keys.
  template <class Add>
  DecodingSecret consume(uint32_t query_bits, std::span<uint8_t> query, const Add& add);

  ProcessToken maker_;
  MatrixSeed seed_;
  SecretBuffer<uint32_t> secret_;
  SecretBuffer<uint32_t> masked_;
  std::vector<uint8_t> packing_keys_;
  SecondQuery second_;
  uint32_t bucket_count_;
};

// Makes `count` queries in one pass over A: each panel is generated once and multiplied by every
// secret. Takes one panel a thread in addition to the queries. `random` is called only on the
// calling thread, for s and then e of one query after another. row_count is a multiple of 64.
// error_max: of the parameter set (LweParams::error_max). thread_count 0: one a processor. Throws
// CancelledError, and the exceptions of `random`.
std::vector<PreparedQuery> prepare_queries(const PublicMatrix& a, uint32_t row_count,
                                           uint32_t error_max, size_t count, unsigned thread_count,
                                           const RandomSource& random,
                                           const ProgressCallback& progress = {});

}  // namespace blindfuse
