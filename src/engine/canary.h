// A canary: a query whose response is known, since the host has computed it too. It shows that an
// engine computes right.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace blindfuse {

struct Canary {
  std::vector<uint32_t> words;  // R, such as queries have: the lowest 32 - query_bits bits are 0
  // The query has these words for each bucket, so that the product is that of one bucket.
  size_t bucket_count = 1;
  std::vector<uint32_t> products;  // C: the words times the matrix, modulo 2^32
  // C odd words that no fault can depend on. The products of all queries are checked with them, too
  // (Engine::check_kernels). Empty: products are not checked.
  std::vector<uint32_t> weights;
  std::vector<uint8_t> query;     // the words as they are sent, and a packing key if there is one
  std::vector<uint8_t> response;  // as it is sent; with a second level, the first one's
  // What the query brings in addition for a second level, and the response that is then sent. Both
  // are empty where there is none, or where the second level is not checked.
  std::vector<uint8_t> second_query;
  std::vector<uint8_t> second_response;
  uint64_t seed = 0;  // of its places in batches
};

}  // namespace blindfuse
