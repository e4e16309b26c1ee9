// Makes queries on several workers at once, which share no memory: one samples secrets and errors,
// all multiply secrets with panels of the public matrix, and the first one adds up the products.
//
// The data that cross to other workers of the same page, and back, are the secrets and s A. They
// are as secret as the queries themselves, which stay in the first worker. Both sides wipe them:
// SecretBuffer here, blindfuse_forget() (core.cpp) the memory that is passed to JavaScript, and
// JavaScript its copies.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "client/prepared_query.h"
#include "client/secret.h"
#include "client/secret_product.h"
#include "src/protocol/public_matrix.h"
#include "src/system/process_token.h"

namespace blindfuse::web {

class Preparation {
 public:
  // row_count is a multiple of 64. Throws the errors of the system's randomness.
  Preparation(const PublicMatrix& a, uint32_t row_count, uint32_t error_max, size_t count);

  uint64_t panel_count() const { return panel_count_; }

  // The input of multiply_elsewhere().
  std::vector<uint8_t> for_others() const;

  // The panels first .. last - 1. Each panel is multiplied once, in any order, by either of these
  // functions.
  void multiply_here(uint64_t first, uint64_t last);
  void add(uint64_t first, uint64_t last, std::span<const uint8_t> products);

  // Throws std::logic_error unless all panels are there.
  std::vector<PreparedQuery> take_queries() &&;

 private:
  void count_panels(uint64_t first, uint64_t last);

  ProcessToken maker_;
  PublicMatrix a_;
  uint64_t panel_count_;
  uint64_t panels_done_ = 0;
  std::vector<SecretBuffer<uint32_t>> secrets_;
  std::vector<SecretBuffer<uint32_t>> masked_;
  std::vector<SecretFactor> factors_;
};

// Takes 64 words a panel for each secret, and returns s A.
std::vector<uint8_t> multiply_elsewhere(std::span<const uint8_t> for_others, uint64_t first,
                                        uint64_t last);

}  // namespace blindfuse::web
