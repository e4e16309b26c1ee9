#include "client/keys_at_once.h"

#include <blindfuse/client_options.h>

#include <algorithm>

#include "src/arithmetic/ring/ring_dimension.h"

namespace blindfuse {
namespace {

constexpr uint64_t kBytesMax = uint64_t{256} << 20;
// At most: the secrets of a query in packed mode with a short key, or in hint mode.
constexpr uint64_t kSecretBytes = 4 * 2 * ring::kDimension;
// About: of a place, where it is and what points to it; of a key, its copies and its Answer.
constexpr uint64_t kPlaceBytes = 128, kKeyBytes = 1024;

}  // namespace

size_t queries_at_once(const Layout& layout) {
  const uint64_t each = std::max(layout.query_bytes(), layout.response_bytes());
  return std::clamp<uint64_t>(kBytesMax / each, 1, kQueriesPerRequest);
}

uint64_t keys_at_once(const Layout& layout) {
  const uint64_t keys = layout.batch ? layout.batch->keys_per_request : kQueriesPerRequest;
  const uint64_t queries = layout.batch ? 1 : kQueriesPerRequest;
  const uint64_t masks = layout.second ? layout.second_pack_count() * ring::kDimension : 0;
  const uint64_t place_bytes = kPlaceBytes + 4 * (layout.record_bytes() + masks);
  const uint64_t request_bytes = queries * (layout.bucket_count() * place_bytes + kSecretBytes) +
                                 keys * (kKeyBytes + layout.record.value_bytes);
  return keys * std::max<uint64_t>(1, kBytesMax / request_bytes);
}

}  // namespace blindfuse
