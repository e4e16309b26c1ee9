// Finds the cause of products that do not agree with their queries (cuda/scan/check_vector.h).
#pragma once

#include <cstdint>
#include <span>

#include "cuda/scan/scanner.h"

namespace blindfuse {

// A batch in which the weighted products of some queries differ from the weighted sums of their
// words.
struct WrongProducts {
  uint32_t query_count;
  uint32_t wrong_count;
  uint32_t query;                      // the first of them
  std::span<const uint32_t> products;  // its products, C words
  uint32_t sum;                        // what its words add up to
};

// Finds the cause for a batch by this kernel; the scanner has a check vector. The check itself is
// the cause if its vector has changed, or if the products agree with the sum that the host
// computes. Otherwise the cause is the matrix if it has changed, and else the kernel, or the kernel
// that cut its limbs. The kernel comes into quarantine. Throws KernelReplacedError if another
// kernel replaces it, and otherwise DeviceLostError.
[[noreturn]] void blame_products(Scanner& scanner, Scanner::Kernel kernel,
                                 const WrongProducts& wrong);

}  // namespace blindfuse
