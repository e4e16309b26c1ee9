#include "bench/probes/shared_product.h"

namespace blindfuse::probes {
namespace {

int32_t signed_byte(uint32_t set, uint32_t row, uint32_t byte) {
  return static_cast<int8_t>(random_word(set, row, byte / 4) >> byte % 4 * 8);
}

}  // namespace

uint32_t expected_hash(uint32_t columns) {
  uint32_t hash = 0;
  for (uint32_t row = 0; row < kRowsOfA; ++row) {
    for (uint32_t column = 0; column < columns; ++column) {
      int32_t sum = 0;
      for (uint32_t set = 0; set < kProductSets; ++set) {
        for (uint32_t byte = 0; byte < kRowBytes; ++byte) {
          sum += signed_byte(set, row, byte) * signed_byte(set, kRowsOfA + column, byte);
        }
      }
      hash += sum_weight({row, column}, columns) * static_cast<uint32_t>(sum);
    }
  }
  return hash;
}

}  // namespace blindfuse::probes
