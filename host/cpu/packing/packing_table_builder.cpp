#include "host/cpu/packing/packing_table_builder.h"

#include <algorithm>
#include <array>
#include <utility>

#include "src/arithmetic/ring/modulus_switch.h"
#include "src/base/errors.h"

namespace blindfuse {

using ring::kDigits;
using ring::kDimension;
using ring::MutablePolynomial;

PackingTableBuilder::PackingTableBuilder(const std::vector<uint32_t>& key_masks,
                                         const RingKernel& kernel)
    : switcher_(key_masks, kernel) {}

std::unique_ptr<Traces> PackingTableBuilder::take_traces() const {
  {
    const std::lock_guard lock(mutex_);
    if (!spare_.empty()) {
      std::unique_ptr<Traces> traces = std::move(spare_.back());
      spare_.pop_back();
      return traces;
    }
  }
  return std::make_unique<Traces>(switcher_.ntt());
}

void PackingTableBuilder::give_back(std::unique_ptr<Traces> traces) const {
  const std::lock_guard lock(mutex_);
  spare_.push_back(std::move(traces));
}

void PackingTableBuilder::build(std::span<const uint32_t> hints, MutablePackingTable table,
                                MutablePolynomial mask) const {
  invariant(hints.size() == kPackColumns * kDimension, "hint polynomials of 1024 columns");
  std::unique_ptr<Traces> traces = take_traces();
  std::array<uint32_t, kDimension> next;
  for (size_t c = 0; c < kPackColumns; ++c) {
    for (size_t i = 0; i < kDimension; ++i) next[i] = ring::switch_to_q(hints[c * kDimension + i]);
    switcher_.ntt().forward(next);
    traces->set(c, next);
  }
  for (size_t part = 0; part < Traces::kParts; ++part) traces->transform(part, kPackColumns);

  traces->read({ring::kOrbit - 1}, mask);
  DigitPolynomials digits;
  for (size_t number = 0; number < kKeySwitches; ++number) {
    traces->read(key_switch_to(number), next);
    if (number + 1 < kKeySwitches) traces->prefetch(key_switch_to(number + 1));
    switcher_.decompose(mask, digits);
    switcher_.add_masks(digits, key_switch_to(number), next);
    for (size_t k = 0; k < kDigits; ++k) {
      for (size_t group = 0; group < kPointGroups; ++group) {
        std::copy_n(digits[k].begin() + static_cast<std::ptrdiff_t>(group * kPointsTogether),
                    kPointsTogether,
                    table.begin() + static_cast<std::ptrdiff_t>(table_place(group, number, k)));
      }
    }
    std::copy(next.begin(), next.end(), mask.begin());
  }
  switcher_.ntt().inverse(mask);
  give_back(std::move(traces));
}

}  // namespace blindfuse
