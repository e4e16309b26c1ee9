// Key switching of masks, modulo the packing modulus (docs/PROTOCOL.md, section 19): a mask m under
// an automorphism's secret becomes one under the query's secret. The digits of m times the key's
// masks, under the automorphism, are added to the mask; the digits times the key's bodies are what
// the body lacks.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "host/cpu/packing/key_switch_ntt.h"
#include "host/cpu/packing/packing_keys.h"
#include "host/cpu/packing/ring_kernels.h"
#include "src/arithmetic/ring/automorphism.h"
#include "src/arithmetic/ring/key_masks.h"

namespace blindfuse {

class KeySwitcher {
 public:
  // key_masks: as PublicPolynomials::key_masks() or short_key_masks() has them.
  KeySwitcher(std::vector<uint32_t> key_masks, const RingKernel& kernel);

  const KeySwitchNtt& ntt() const { return *ntt_; }

  // The digits of a mask. Both are in the evaluation domain of Ntt. Any thread.
  void decompose(ring::Polynomial mask, DigitPolynomials& digits) const;

  // next += the digits times the key's masks under the automorphism. Any thread.
  void add_masks(const DigitPolynomials& digits, const ring::Automorphism& to,
                 ring::MutablePolynomial next) const;

  // Multiplies numbers below the packing modulus by 2^32, for KeySwitchNtt::add_divided_products.
  void scale(std::span<uint32_t> words) const;
  // A query's key, for add_bodies: PackingKeys::words() times 2^32.
  std::vector<uint32_t> scaled_key(const uint32_t* key) const;

  // sum += the digits times the bodies of a scaled_key() under the automorphism. Any thread.
  void add_bodies(const DigitPolynomials& digits, const ring::Automorphism& to,
                  const std::vector<uint32_t>& scaled_key, ring::MutablePolynomial sum) const;

 private:
  std::vector<uint32_t> scaled(std::vector<uint32_t> words) const;

  std::unique_ptr<const KeySwitchNtt> ntt_;
  ring::KeyMasks scaled_masks_;  // times 2^32
};

}  // namespace blindfuse
