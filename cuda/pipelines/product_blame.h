// Finds the cause of products that do not agree with their queries (cuda/scan/check_vector.h).
#pragma once

#include <cstdint>
#include <span>

#include "cuda/scan/scanner.h"

namespace blindfuse {

// A batch in which the products of some queries, weighted, are not what their words add up to.
struct WrongProducts {
  uint32_t query_count;
  uint32_t wrong_count;
  uint32_t query;                      // the first of them
  std::span<const uint32_t> products;  // its products, C words
  uint32_t sum;                        // what its words add up to
};

// Of a batch by this kernel; the scanner has a check vector. The check itself is to blame where its
// vector has changed, or where the products agree with the sum by what the host computes. Otherwise
// it is the matrix, if that has changed; and if not, the kernel, or what cut its limbs: the kernel
// comes into quarantine. Throws KernelReplacedError where another kernel takes its place, and else
// DeviceLostError.
[[noreturn]] void blame_products(Scanner& scanner, Scanner::Kernel kernel,
                                 const WrongProducts& wrong);

}  // namespace blindfuse
