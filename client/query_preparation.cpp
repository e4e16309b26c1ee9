#include "client/query_preparation.h"

#include "client/ring_query.h"
#include "src/public_matrix.h"
#include "src/ring/public_polynomials.h"

namespace blindfuse {

std::vector<PreparedQuery> prepare_queries_for(const Manifest& manifest, size_t count,
                                               unsigned thread_count, const RandomSource& random,
                                               const ProgressCallback& progress) {
  const Layout& layout = manifest.layout;
  if (layout.mode() == Mode::kPacked) {
    return prepare_ring_queries(ring::PublicPolynomials(manifest.seed), layout.row_count, count,
                                random, progress);
  }
  return prepare_queries(PublicMatrix(manifest.seed, layout.lwe->dimension), layout.row_count,
                         count, thread_count, random, progress);
}

}  // namespace blindfuse
