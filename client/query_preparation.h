// Prepares queries for one database, ahead of the keys, in the way that its mode requires.
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

// Holds the data that all queries of the database share. If responses are packed, it is worth
// keeping for the next queries.
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

// The same for one pass.
std::vector<PreparedQuery> prepare_queries_for(const Manifest& manifest, size_t count,
                                               unsigned thread_count, const RandomSource& random,
                                               const ProgressCallback& progress = {});

}  // namespace blindfuse
