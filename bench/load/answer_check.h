// Keeps some of the answers while the load lasts. Decodes them after it, and compares them with the
// expected values.
//
// A query that is sent again gets the same bytes again, as long as the epoch lasts. So one copy of
// them is kept, and one decoded, however often they came.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "bench/load/query_pool.h"

namespace blindfuse::load {

struct CheckResult {
  void merge(const CheckResult& other);

  uint64_t checked = 0;               // look-ups, each of a key
  uint64_t mismatches = 0;            // of them
  std::vector<std::string> examples;  // of mismatches, a line each, a few
};

class AnswerCheck {
 public:
  // Takes the body of a success, the answer to request i of the pool. Answers to other pools than
  // the current one are not kept.
  void keep(const QueryPool& pool, size_t i, std::string body);
  void set_pool(std::shared_ptr<const QueryPool> pool);

  // Decodes and compares the kept answers, and drops them and the pool. Throws CacheError if a hint
  // is damaged.
  CheckResult check(const ServedDatabase& served);

 private:
  // The number of times that each body came, for each request.
  using Answers = std::map<size_t, std::map<std::string, uint64_t>>;

  std::mutex mutex_;  // a change of the epoch has a thread of its own
  std::shared_ptr<const QueryPool> pool_;
  Answers answers_;
};

}  // namespace blindfuse::load
