// Makes packing tables and masks from the hint polynomials of 1024 columns.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "host/cpu/packing/ring_kernels.h"
#include "src/arithmetic/packing_table.h"
#include "src/arithmetic/ring/key_masks.h"
#include "src/arithmetic/ring/ntt.h"

namespace blindfuse {

class PackingTableBuilder {
 public:
  // key_masks: as PublicPolynomials::key_masks() has them.
  explicit PackingTableBuilder(std::vector<uint32_t> key_masks,
                               const RingKernel& kernel = ring_kernels().front());

  // hints: the hint polynomials h_c of 1024 columns, one after another, coefficients modulo 2^32
  // (zeros for columns that there are not). Writes the table and the mask's coefficients modulo the
  // packing modulus: with r the responses and s the secret, coefficients 0 .. 1023 of
  //   pack(table, key, r) - s * mask  are near  Q / 2^32 times  those of
  //   sum over c of X^c (r_c - (s h_c)[0]).
  // Takes 8 MiB in addition. Any thread.
  void build(std::span<const uint32_t> hints, MutablePackingTable table,
             ring::MutablePolynomial mask) const;

 private:
  // Writes the digits of a mask as switch `number`, and adds their products with the key's masks to
  // `next`. All in the evaluation domain.
  void add_key_switched(ring::Polynomial mask, size_t number, MutablePackingTable table,
                        ring::MutablePolynomial next) const;

  std::unique_ptr<const ring::Ntt> ntt_;
  ring::KeyMasks key_masks_;
};

}  // namespace blindfuse
