#include "cuda/packing/hint_words.h"

#include <algorithm>
#include <vector>

#include "cuda/device/stream.h"
#include "cuda/packing/table_kernels.h"
#include "cuda/scan/scan_kernels.h"
#include "src/base/errors.h"

namespace blindfuse {
namespace {

// Every tile of columns reads the limbs of these rows again: 33.5 MB, which the second-level cache
// of large GPUs holds.
constexpr uint64_t kRowsAtOnce = 2 * uint64_t{kRingWords};

uint64_t limb_bytes(uint64_t row_count) {
  return limb_rows_for(kRingWords) * std::min(kRowsAtOnce, row_count);
}

// Neighbouring columns of one bucket.
struct BucketRun {
  uint64_t bucket;
  ColumnRange columns;
};

std::vector<BucketRun> runs_of(std::span<const uint32_t> buckets) {
  std::vector<BucketRun> runs;
  for (uint64_t c = 0; c < buckets.size(); ++c) {
    if (runs.empty() || runs.back().bucket != buckets[c]) runs.push_back({buckets[c], {c, 0}});
    ++runs.back().columns.count;
  }
  return runs;
}

}  // namespace

uint64_t hint_words_bytes(uint64_t row_count, uint64_t column_count, uint64_t block_words) {
  return limb_bytes(row_count) + sizeof(uint32_t) * (block_words + kRingWords * column_count);
}

DeviceMemory<uint32_t> make_hint_words(Scanner& scanner, const DeviceMatrix& matrix,
                                       const PublicBlocks& blocks) {
  const uint64_t row_count = matrix.row_count();
  const uint64_t column_count = matrix.column_count();
  invariant(
      row_count % kRingWords == 0 && blocks.words.size() % std::max<uint64_t>(row_count, 1) == 0,
      "a polynomial of 2048 words for every 2048 rows");
  invariant(blocks.buckets.size() == column_count, "a bucket for every column");
  DeviceMemory<uint32_t> hints(kRingWords * column_count);
  const DeviceMemory<uint32_t> device_blocks(blocks.words.size());
  const DeviceMemory<int8_t> limb_memory(limb_bytes(row_count));
  BLINDFUSE_CUDA(cudaDeviceSynchronize());  // all is cleared
  if (row_count == 0) return hints;
  const Stream stream;
  BLINDFUSE_CUDA(cudaMemcpyAsync(device_blocks.data(), blocks.words.data(),
                                 blocks.words.size_bytes(), cudaMemcpyHostToDevice, stream.get()));
  for (const BucketRun& run : runs_of(blocks.buckets)) {
    invariant((run.bucket + 1) * row_count <= blocks.words.size(), "columns of one of the buckets");
    const uint32_t* const of_bucket = device_blocks.data() + run.bucket * row_count;
    for (uint64_t first = 0; first < row_count; first += kRowsAtOnce) {
      const RowRange rows{first, std::min(first + kRowsAtOnce, row_count)};
      const Scanner::Choice choice = scanner.choose(kRingWords);
      const Limbs limbs{limb_memory.data(), rows.size(), choice.order};
      start_cut_public_rows(of_bucket + first, limbs, stream.get());
      scanner.start_columns(choice, limbs, kRingWords, rows, run.columns,
                            {hints.data() + run.columns.first, column_count}, stream.get());
    }
  }
  stream.wait();
  return hints;
}

}  // namespace blindfuse
