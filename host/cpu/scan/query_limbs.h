// A block of query words in the form that a kernel multiplies.
#pragma once

#include <cstdint>
#include <memory>

#include "host/cpu/scan/multiply_kernel.h"
#include "src/engine/engine.h"

namespace blindfuse {

// Each thread has its own. It is as large as the cache in which it is to stay.
class QueryLimbs {
 public:
  // Takes memory for queries of as many rows as a block has. Holds as many queries as the kernel
  // takes at once.
  explicit QueryLimbs(const MultiplyKernel& kernel);

  // Cuts the words `words`.first .. `words`.last-1 of all queries, after `lead` (below 64) zeros
  // and before as many as fill the last group.
  void cut(const QueryBatch& queries, RowRange words, size_t lead);

  // The groups that were cut last; the caller adds the matrix and the products.
  MultiplyArgs args() const;

 private:
  struct Deleter {
    void operator()(uint8_t* bytes) const;
  };

  using Buffer = std::unique_ptr<uint8_t, Deleter>;
  static Buffer allocate(size_t bytes);

  const MultiplyKernel& kernel_;
  const size_t bytes_max_;
  Buffer bytes_;
  Buffer scratch_;
  size_t query_count_ = 0;
  size_t group_count_ = 0;
};

}  // namespace blindfuse
