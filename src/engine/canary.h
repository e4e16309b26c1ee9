// A canary: a query whose product and response the host has computed, too. It shows that an engine
// computes right.
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
  // C odd words that faults cannot depend on. The products of all queries are checked with them,
  // too (Engine::check_kernels). Empty: products are not checked.
  std::vector<uint32_t> weights;
  // Queries as clients send them, and their responses. There are two, so that memory left by an
  // earlier one is not right for the next one.
  struct Exchange {
    std::vector<uint8_t> query;
    std::vector<uint8_t> response;
  };
  Exchange exchanges[2];
};

}  // namespace blindfuse
