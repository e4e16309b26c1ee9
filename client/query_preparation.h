// Queries for one database, made ahead of the keys in the way that its mode asks for.
#pragma once

#include <blindfuse/progress.h>

#include <cstddef>
#include <optional>
#include <vector>

#include "client/prepared_query.h"
#include "client/ring_query.h"
#include "src/protocol/manifest.h"
#include "src/system/random.h"

namespace blindfuse {

// Holds what all queries of the database have in common; where responses are packed, that is worth
// keeping for the next ones.
class QueryPreparation {
 public:
  explicit QueryPreparation(const Manifest& manifest);

  // Makes `count` queries in one pass over the public matrix, or over the public polynomials where
  // responses are packed: those by the calling thread alone, as one takes some ten milliseconds.
  // thread_count 0: one a processor. `random` is called on the calling thread alone. Throws
  // CancelledError, and what `random` throws.
  std::vector<PreparedQuery> make(size_t count, unsigned thread_count, const RandomSource& random,
                                  const ProgressCallback& progress = {}) const;

 private:
  Manifest manifest_;
  std::optional<RingQueryMaker> ring_;  // where responses are packed
};

// The same for one pass.
std::vector<PreparedQuery> prepare_queries_for(const Manifest& manifest, size_t count,
                                               unsigned thread_count, const RandomSource& random,
                                               const ProgressCallback& progress = {});

}  // namespace blindfuse
