#include "host/publish/plan_request.h"

namespace blindfuse {

uint64_t request_count(const Layout& layout, uint64_t lookups) {
  const uint64_t keys = layout.batch ? layout.batch->keys_per_request : 1;
  return (lookups + keys - 1) / keys;
}

uint64_t request_bytes(const Layout& layout) {
  return layout.query_bytes() + layout.response_bytes();
}

}  // namespace blindfuse
