// Ntt on vectors of N lanes, for the files with code for an instruction set. Instructions has these
// members, with 32 bits in each lane:
//   kLanes, Vector; load, store, broadcast; transpose(Vector[kLanes]);
//   permute(from, places, to, count): to[i] = from[places[i]];
//   sum(a, b), difference(a, b) and lower_product(a, b) modulo 2^32, lesser(a, b);
//   upper_product(a, b), whose lanes may be in another order, always the same one, and in_order(x),
//   which restores the order of lanes;
//   shift_down<bits>(x) of signed numbers, shift_up<bits>(x), both(a, b) bit by bit;
//   add_where_less(x, a, b, y): x + y where a < b, and x elsewhere.
//
// Cost: 11 levels of 2048 / 2N butterflies, each with five multiplications of vectors and 15 to 21
// cheaper operations. The polynomial, the tables and the intermediate values take some 48 KiB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "host/cpu/packing/ring_kernels.h"
#include "host/cpu/packing/vector_ntt_tables.h"
#include "src/arithmetic/ring/gadget.h"

namespace blindfuse {

// Arithmetic modulo the NTT's modulus. All numbers are below it, except unreduced ones: these are
// any 32 bits that are congruent.
template <class Instructions>
class LanesModulo : public Instructions {
 public:
  using Vector = typename Instructions::Vector;

  explicit LanesModulo(const VectorNttView& view)
      : modulus_(Instructions::broadcast(view.modulus)),
        two32_(Instructions::broadcast(-view.modulus)),
        inverse_(Instructions::broadcast(view.inverse_of_modulus)) {}

  // If a is unreduced, so is the difference.
  Vector subtract(Vector a, Vector b) const {
    return Instructions::add_where_less(Instructions::difference(a, b), a, b, modulus_);
  }
  Vector add(Vector a, Vector b) const {
    return subtract(a, Instructions::difference(modulus_, b));
  }
  // An unreduced number plus b, unreduced. If the sum wraps, 2^32 modulo the modulus is added. That
  // does not wrap again, because the wrapped sum is below b, and b is below the modulus.
  Vector add_to_unreduced(Vector a, Vector b) const {
    const Vector sum = Instructions::sum(a, b);
    return Instructions::add_where_less(sum, sum, a, two32_);
  }
  // The number below the modulus that is congruent to an unreduced one.
  Vector reduce(Vector a) const {
    return Instructions::lesser(a, Instructions::difference(a, modulus_));
  }
  // x, which may be unreduced, times the factor, computed as in ring::MontgomeryConstant.
  Vector multiply(Vector x, Vector value, Vector scaled) const {
    return Instructions::in_order(
        subtract(Instructions::upper_product(x, value),
                 Instructions::upper_product(Instructions::lower_product(x, scaled), modulus_)));
  }
  // a b / 2^32.
  Vector divided(Vector a, Vector b) const {
    const Vector multiple =
        Instructions::lower_product(Instructions::lower_product(a, b), inverse_);
    return Instructions::in_order(subtract(Instructions::upper_product(a, b),
                                           Instructions::upper_product(multiple, modulus_)));
  }

 private:
  Vector modulus_, two32_, inverse_;
};

template <class Instructions>
struct VectorNtt {
  using Lanes = LanesModulo<Instructions>;
  using Vector = typename Lanes::Vector;
  static constexpr size_t kLanes = Lanes::kLanes;
  static constexpr size_t kWords = 2048;
  static constexpr size_t kTileWords = kLanes * kLanes;
  static constexpr size_t kTailWords = 2 * kLanes * (kLanes - 1);  // of a tile

  // Numbers are unreduced until the end. The first levels are left out while their upper inputs are
  // zeros: they would copy their lower inputs. The first level that runs reads the same inputs for
  // every block.
  static void forward(const VectorNttView& view, uint32_t* polynomial, size_t count) {
    const Lanes lanes(view);
    alignas(64) uint32_t x[kWords];
    alignas(64) uint32_t tiles[kWords];
    size_t blocks = 1, gap = kWords / 2;
    for (; gap >= count && gap > kLanes; gap /= 2) blocks *= 2;
    const uint32_t* from = polynomial;
    size_t from_pitch = 0;
    for (; gap >= kLanes; blocks *= 2, gap /= 2) {
      for (size_t block = 0; block < blocks; ++block) {
        const ring::MontgomeryConstant twiddle = view.forward[blocks + block];
        const Vector value = Lanes::broadcast(twiddle.value);
        const Vector scaled = Lanes::broadcast(twiddle.scaled);
        const uint32_t* const low_from = from + block * from_pitch;
        uint32_t* const low_to = x + 2 * block * gap;
        for (size_t i = 0; i < gap; i += kLanes) {
          const Vector low = Lanes::load(low_from + i);
          const Vector turned = lanes.multiply(Lanes::load(low_from + i + gap), value, scaled);
          Lanes::store(low_to + i, lanes.add_to_unreduced(low, turned));
          Lanes::store(low_to + i + gap, lanes.subtract(low, turned));
        }
      }
      from = x;
      from_pitch = gap;
    }
    for (size_t tile = 0; tile < kWords / kTileWords; ++tile) {
      Vector rows[kLanes];
      load_tile(x + tile * kTileWords, rows);
      Lanes::transpose(rows);
      forward_tail<1>(lanes, view.forward_tail + tile * kTailWords, rows);
#pragma GCC unroll 16
      for (size_t i = 0; i < kLanes; ++i) rows[i] = lanes.reduce(rows[i]);
      store_tile(rows, tiles + tile * kTileWords);
    }
    Lanes::permute(tiles, view.place_of_point, polynomial, kWords);
  }

  static void inverse(const VectorNttView& view, uint32_t* polynomial) {
    const Lanes lanes(view);
    alignas(64) uint32_t x[kWords];
    Lanes::permute(polynomial, view.point_of_place, x, kWords);
    for (size_t tile = 0; tile < kWords / kTileWords; ++tile) {
      Vector rows[kLanes];
      load_tile(x + tile * kTileWords, rows);
      inverse_tail<kLanes / 2>(lanes, view.inverse_tail + tile * kTailWords, rows);
      Lanes::transpose(rows);
      store_tile(rows, x + tile * kTileWords);
    }
    for (size_t blocks = kWords / 2 / kLanes, gap = kLanes; blocks > 0; blocks /= 2, gap *= 2) {
      for (size_t block = 0; block < blocks; ++block) {
        const ring::MontgomeryConstant twiddle = view.inverse[blocks + block];
        const Vector value = Lanes::broadcast(twiddle.value);
        const Vector scaled = Lanes::broadcast(twiddle.scaled);
        for (size_t i = 2 * block * gap; i < (2 * block + 1) * gap; i += kLanes) {
          const Vector low = Lanes::load(x + i);
          const Vector high = Lanes::load(x + i + gap);
          Lanes::store(x + i, lanes.add(low, high));
          Lanes::store(x + i + gap, lanes.multiply(lanes.subtract(low, high), value, scaled));
        }
      }
    }
    const Vector value = Lanes::broadcast(view.scale.value);
    const Vector scaled = Lanes::broadcast(view.scale.scaled);
    for (size_t i = 0; i < kWords; i += kLanes) {
      Lanes::store(polynomial + i, lanes.multiply(Lanes::load(x + i), value, scaled));
    }
  }

  static void add_products(const VectorNttView& view, const uint32_t* a, const uint32_t* b,
                           uint32_t* sum) {
    const Lanes lanes(view);
    const Vector value = Lanes::broadcast(view.two32.value);
    const Vector scaled = Lanes::broadcast(view.two32.scaled);
    for (size_t i = 0; i < kWords; i += kLanes) {
      const Vector divided = lanes.divided(Lanes::load(a + i), Lanes::load(b + i));
      const Vector product = lanes.multiply(divided, value, scaled);
      Lanes::store(sum + i, lanes.add(Lanes::load(sum + i), product));
    }
  }

  static void add_divided_products(const VectorNttView& view, const uint32_t* a, const uint32_t* b,
                                   uint32_t* sum) {
    const Lanes lanes(view);
    for (size_t i = 0; i < kWords; i += kLanes) {
      const Vector divided = lanes.divided(Lanes::load(a + i), Lanes::load(b + i));
      Lanes::store(sum + i, lanes.add(Lanes::load(sum + i), divided));
    }
  }

  static void join_halves(const VectorNttView& view, const uint32_t* values, uint32_t* joined) {
    const Lanes lanes(view);
    for (size_t i = 0; i < ring::kOrbit; i += kLanes) {
      const Vector first = Lanes::load(values + i);
      const Vector second = Lanes::load(values + ring::kOrbit + i);
      Lanes::store(joined + i, lanes.add(first, second));
      Lanes::store(joined + ring::kOrbit + i, lanes.subtract(second, first));
    }
  }

  static void add_digit_products(const VectorNttView& view, const DigitProducts& products) {
    const Lanes lanes(view);
    for (size_t i = 0; i < ring::kOrbit; i += kLanes) {
      Vector sum = Lanes::load(products.sum + i);
#pragma GCC unroll 3
      for (size_t k = 0; k < ring::kDigits; ++k) {
        sum = lanes.add_to_unreduced(sum, lanes.divided(Lanes::load(products.digits[k] + i),
                                                        Lanes::load(products.keys[k] + i)));
      }
      Lanes::store(products.sum + i, lanes.reduce(sum));
    }
  }

  // ring::decompose, with 32 bits for every number: the centered coefficient is at most half the
  // modulus, which leaves room for what rounds it.
  static void decompose(const VectorNttView& view, const uint32_t* polynomial,
                        uint32_t* const* digits) {
    using ring::kDigitBits, ring::kDigits, ring::kDroppedBits;
    const Vector half = Lanes::broadcast(view.modulus / 2);
    const Vector modulus = Lanes::broadcast(view.modulus);
    const Vector above = Lanes::broadcast(-view.modulus);
    // x - (-y) is x + y.
    const Vector rounds = Lanes::broadcast(-(uint32_t{1} << (kDroppedBits - 1)));
    const Vector carries = Lanes::broadcast(-(uint32_t{1} << (kDigitBits - 1)));
    for (size_t i = 0; i < kWords; i += kLanes) {
      const Vector x = Lanes::load(polynomial + i);
      const Vector centered = Lanes::add_where_less(x, half, x, above);
      Vector rest = Lanes::template shift_down<kDroppedBits>(Lanes::difference(centered, rounds));
      for (size_t k = 0; k < kDigits; ++k) {
        Vector digit = rest;
        if (k + 1 < kDigits) {
          rest = Lanes::template shift_down<kDigitBits>(Lanes::difference(rest, carries));
          digit = Lanes::difference(digit, Lanes::template shift_up<kDigitBits>(rest));
        }
        const Vector below_zero = Lanes::both(Lanes::template shift_down<31>(digit), modulus);
        const Vector reduced = Lanes::difference(digit, Lanes::difference(Vector{}, below_zero));
        Lanes::store(digits[k] + i, reduced);
      }
    }
  }

  static constexpr RingKernel kernel(std::string_view name,
                                     void (*sum_group)(const GroupSumArgs&)) {
    return {.name = name,
            .lanes = kLanes,
            .forward = forward,
            .inverse = inverse,
            .add_products = add_products,
            .add_divided_products = add_divided_products,
            .join_halves = join_halves,
            .add_digit_products = add_digit_products,
            .decompose = decompose,
            .sum_group = sum_group};
  }

 private:
  // The factors of the level with kBlocks blocks in a row of a tile follow those of the levels with
  // fewer.
  static constexpr size_t level_words(size_t blocks) { return 2 * kLanes * (blocks - 1); }

  // The level with kBlocks blocks, and those after it. Templates, so that all rows are registers.
  template <size_t kBlocks>
  static void forward_tail(const Lanes& lanes, const uint32_t* tail, Vector* rows) {
    constexpr size_t kGap = kLanes / 2 / kBlocks;
    const uint32_t* factors = tail + level_words(kBlocks);
#pragma GCC unroll 8
    for (size_t pair = 0; pair < kLanes / 2; ++pair) {
      const size_t block = pair / kGap;
      const size_t i = 2 * block * kGap + pair % kGap;
      const Vector value = Lanes::load(factors + 2 * kLanes * block);
      const Vector scaled = Lanes::load(factors + 2 * kLanes * block + kLanes);
      const Vector turned = lanes.multiply(rows[i + kGap], value, scaled);
      rows[i + kGap] = lanes.subtract(rows[i], turned);
      rows[i] = lanes.add_to_unreduced(rows[i], turned);
    }
    if constexpr (kGap > 1) forward_tail<2 * kBlocks>(lanes, tail, rows);
  }

  template <size_t kBlocks>
  static void inverse_tail(const Lanes& lanes, const uint32_t* tail, Vector* rows) {
    constexpr size_t kGap = kLanes / 2 / kBlocks;
    const uint32_t* factors = tail + level_words(kBlocks);
#pragma GCC unroll 8
    for (size_t pair = 0; pair < kLanes / 2; ++pair) {
      const size_t block = pair / kGap;
      const size_t i = 2 * block * kGap + pair % kGap;
      const Vector value = Lanes::load(factors + 2 * kLanes * block);
      const Vector scaled = Lanes::load(factors + 2 * kLanes * block + kLanes);
      const Vector difference = lanes.subtract(rows[i], rows[i + kGap]);
      rows[i] = lanes.add(rows[i], rows[i + kGap]);
      rows[i + kGap] = lanes.multiply(difference, value, scaled);
    }
    if constexpr (kBlocks > 1) inverse_tail<kBlocks / 2>(lanes, tail, rows);
  }

  static void load_tile(const uint32_t* words, Vector* rows) {
#pragma GCC unroll 16
    for (size_t i = 0; i < kLanes; ++i) rows[i] = Lanes::load(words + i * kLanes);
  }
  static void store_tile(const Vector* rows, uint32_t* words) {
#pragma GCC unroll 16
    for (size_t i = 0; i < kLanes; ++i) Lanes::store(words + i * kLanes, rows[i]);
  }
};

}  // namespace blindfuse
