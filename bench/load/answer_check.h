// Some of the answers, kept while the load lasts, and decoded and compared with the truth after it.
//
// A query that is sent again is answered with the same bytes again, as long as the epoch lasts: so
// one copy of them is kept, and one decoded, however often they came.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "bench/load/query_pool.h"
#include "bench/load/served_database.h"

namespace blindfuse::load {

struct CheckResult {
  void merge(const CheckResult& other);

  uint64_t checked = 0;               // look-ups
  uint64_t mismatches = 0;            // of them
  std::vector<std::string> examples;  // of mismatches, a line each, a few
};

class AnswerCheck {
 public:
  explicit AnswerCheck(BodyFormat format) : format_(format) {}

  // The body of a success, the answer to request i of the pool.
  void keep(size_t i, std::string body);

  // Decodes and compares what was kept, all of it answers to this pool, and forgets it. Throws
  // AlteredCache when a hint is not what it should be.
  CheckResult check(const QueryPool& pool, const ServedDatabase& served);

 private:
  struct Variant {
    std::string body;
    uint64_t count = 0;
  };

  BodyFormat format_;
  std::map<size_t, std::vector<Variant>> answers_;  // to each request
};

}  // namespace blindfuse::load
