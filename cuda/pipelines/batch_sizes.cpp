#include "cuda/pipelines/batch_sizes.h"

#include "cuda/scan/device_matrix.h"
#include "cuda/scan/scan_kernels.h"
#include "src/arithmetic/bit_sequence.h"
#include "src/arithmetic/packing_table.h"
#include "src/arithmetic/ring/packing_key_format.h"

namespace blindfuse {
namespace {

// 128 bytes: the products, which follow, begin where a warp's accesses to them are whole lines.
constexpr uint64_t kLineWords = 32;

}  // namespace

BatchSizes::BatchSizes(const BatchShape& shape, size_t batch_max)
    : query_bytes(bit_sequence_bytes(shape.bucket_count * shape.row_count, shape.query_bits)),
      // Reading a word touches the one after it.
      extras_at((query_bytes + 3) / 4 + 1),
      slot_words(extras_at + shape.extra_words + shape.second_words),
      response_words(shape.response_words),
      queries(batch_max * slot_words),
      limbs(limb_rows_for(static_cast<uint32_t>(batch_max)) *
            DeviceMatrix::pitch_of(shape.row_count)),
      sums((batch_max + kLineWords - 1) / kLineWords * kLineWords),
      products(batch_max * shape.column_count),
      responses(batch_max * shape.response_words) {}

BatchShape hint_shape(uint64_t row_count, uint64_t column_count, uint32_t query_bits,
                      uint32_t response_bits) {
  return {row_count, column_count, query_bits, 0, (column_count + 31) / 32 * response_bits, 0, 1};
}

BatchShape packed_shape(uint64_t row_count, uint64_t column_count, size_t pack_count,
                        uint32_t query_bits, uint32_t response_bits, const SecondLevelSpec* second,
                        size_t bucket_count) {
  return {row_count,
          column_count,
          query_bits,
          ring::kKeyWords,
          pack_count * (kPackColumns / 32) * response_bits,
          second == nullptr ? 0 : (second->query_bytes() + 3) / 4,
          bucket_count};
}

}  // namespace blindfuse
