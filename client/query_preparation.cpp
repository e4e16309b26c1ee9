#include "client/query_preparation.h"

#include "src/protocol/public_matrix.h"
#include "src/protocol/public_polynomials.h"

namespace blindfuse {

QueryPreparation::QueryPreparation(const Manifest& manifest) : manifest_(manifest) {
  const Layout& layout = manifest.layout;
  if (layout.mode() == Mode::kPacked) {
    RingQueryMaker::Second second;
    if (layout.second) second = {layout.second_row_count(), layout.second->key_order};
    ring_.emplace(ring::PublicPolynomials(manifest.seed), layout.row_count, second,
                  layout.bucket_count());
  }
}

std::vector<PreparedQuery> QueryPreparation::make(size_t count, unsigned thread_count,
                                                  const RandomSource& random,
                                                  const ProgressCallback& progress) const {
  if (ring_) return ring_->make(count, random, progress);
  const LweParams& lwe = *manifest_.layout.lwe;
  return prepare_queries(PublicMatrix(manifest_.seed, lwe.dimension), manifest_.layout.row_count,
                         lwe.error_max, count, thread_count, random, progress);
}

std::vector<PreparedQuery> prepare_queries_for(const Manifest& manifest, size_t count,
                                               unsigned thread_count, const RandomSource& random,
                                               const ProgressCallback& progress) {
  return QueryPreparation(manifest).make(count, thread_count, random, progress);
}

}  // namespace blindfuse
