// Packing for any processor.
#include "host/cpu/packing/group_sums.h"

namespace blindfuse {
namespace {

using ring::kPackingModulus;

// Products below 2^64 are added up as halves: 3069 of these stay far below 2^64.
void sum_group(const GroupSumArgs& args) {
  for (size_t query = 0; query < args.query_count; ++query) {
    const uint32_t* keys = args.keys[query];
    uint64_t low[kPointsTogether] = {};
    uint64_t high[kPointsTogether] = {};
    for_each_line(args.table, args.point, [&](const uint32_t* line, size_t place) {
      for (size_t i = 0; i < kPointsTogether; ++i) {
        const uint64_t product = static_cast<uint64_t>(line[i]) * keys[place + i];
        low[i] += static_cast<uint32_t>(product);
        high[i] += product >> 32;
      }
    });
    constexpr uint64_t kTwo32 = (uint64_t{1} << 32) % kPackingModulus;
    for (size_t i = 0; i < kPointsTogether; ++i) {
      const uint64_t upper = high[i] % kPackingModulus * kTwo32 % kPackingModulus;
      args.sums[query * kPointsTogether + i] =
          static_cast<uint32_t>((upper + low[i] % kPackingModulus) % kPackingModulus);
    }
  }
}

}  // namespace

const RingKernel kPortableRingKernel = {.name = "portable",
                                        .lanes = 0,
                                        .forward = nullptr,
                                        .inverse = nullptr,
                                        .add_products = nullptr,
                                        .add_divided_products = nullptr,
                                        .join_halves = nullptr,
                                        .add_digit_products = nullptr,
                                        .decompose = nullptr,
                                        .sum_group = sum_group};

}  // namespace blindfuse
