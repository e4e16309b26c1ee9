// Makes packing tables and masks from the hint polynomials of 1024 columns.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "host/cpu/packing/key_switcher.h"
#include "host/cpu/packing/ring_kernels.h"
#include "host/cpu/packing/traces.h"
#include "src/arithmetic/packing_table.h"

namespace blindfuse {

class PackingTableBuilder {
 public:
  // key_masks: as PublicPolynomials::key_masks() has them.
  explicit PackingTableBuilder(const std::vector<uint32_t>& key_masks,
                               const RingKernel& kernel = ring_kernels().front());

  // hints: the hint polynomials h_c of 1024 columns, one after another, coefficients modulo 2^32
  // (zeros for columns that there are not). Writes the table and the mask's coefficients modulo the
  // packing modulus: with r the responses and s the secret, coefficients 0 .. 1023 of
  //   pack(table, key, r) - s * mask  are near  Q / 2^32 times  those of
  //   sum over c of X^c (r_c - (s h_c)[0]).
  // Any thread. Takes 17 MB for each call at the same time, which stay for later calls. Throws
  // ResourceError.
  void build(std::span<const uint32_t> hints, MutablePackingTable table,
             ring::MutablePolynomial mask) const;

 private:
  std::unique_ptr<Traces> take_traces() const;
  void give_back(std::unique_ptr<Traces> traces) const;

  const KeySwitcher switcher_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Traces>> spare_;  // under the mutex
};

}  // namespace blindfuse
