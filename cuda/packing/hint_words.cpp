#include "cuda/packing/hint_words.h"

#include <algorithm>

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

}  // namespace

uint64_t hint_words_bytes(uint64_t row_count, uint64_t column_count) {
  return limb_bytes(row_count) + sizeof(uint32_t) * (row_count + kRingWords * column_count);
}

DeviceMemory<uint32_t> make_hint_words(Scanner& scanner, const DeviceMatrix& matrix,
                                       std::span<const uint32_t> blocks) {
  const uint64_t row_count = matrix.row_count();
  invariant(blocks.size() == row_count && row_count % kRingWords == 0,
            "a polynomial of 2048 words for every 2048 rows");
  DeviceMemory<uint32_t> hints(kRingWords * matrix.column_count());
  const DeviceMemory<uint32_t> device_blocks(row_count);
  const DeviceMemory<int8_t> limb_memory(limb_bytes(row_count));
  BLINDFUSE_CUDA(cudaDeviceSynchronize());  // all is cleared
  if (row_count == 0) return hints;
  const Stream stream;
  BLINDFUSE_CUDA(cudaMemcpyAsync(device_blocks.data(), blocks.data(), blocks.size_bytes(),
                                 cudaMemcpyHostToDevice, stream.get()));
  for (uint64_t first = 0; first < row_count; first += kRowsAtOnce) {
    const RowRange rows{first, std::min(first + kRowsAtOnce, row_count)};
    const Scanner::Choice choice = scanner.choose(kRingWords);
    const Limbs limbs{limb_memory.data(), rows.size(), choice.order};
    start_cut_public_rows(device_blocks.data() + first, limbs, stream.get());
    scanner.start(choice, limbs, kRingWords, rows, hints.data(), stream.get());
  }
  stream.wait();
  return hints;
}

}  // namespace blindfuse
