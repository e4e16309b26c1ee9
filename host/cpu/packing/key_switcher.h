// Key switching of masks, modulo the packing modulus (docs/PROTOCOL.md, section 19): a mask m under
// an automorphism's secret becomes one under the query's secret. The digits of m times the key's
// masks, under the automorphism, are added to the mask. The digits times the key's bodies, another
// ScaledKey, are what the body lacks.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "host/cpu/packing/key_switch_ntt.h"
#include "host/cpu/packing/ring_kernels.h"
#include "host/cpu/packing/scaled_key.h"
#include "src/arithmetic/ring/automorphism.h"

namespace blindfuse {

class KeySwitcher {
 public:
  // key_masks: as PublicPolynomials::key_masks() or short_key_masks() has them.
  KeySwitcher(const std::vector<uint32_t>& key_masks, const RingKernel& kernel);

  const KeySwitchNtt& ntt() const { return *ntt_; }

  // The digits of a mask. Both are in the evaluation domain of Ntt. Any thread.
  void decompose(ring::Polynomial mask, DigitPolynomials& digits) const;

  // next += the digits times the key's masks under the automorphism. Any thread.
  void add_masks(const DigitPolynomials& digits, const ring::Automorphism& to,
                 ring::MutablePolynomial next) const {
    masks_.add_products(*ntt_, digits, to, next);
  }

 private:
  std::unique_ptr<const KeySwitchNtt> ntt_;
  const ScaledKey masks_;
};

}  // namespace blindfuse
