#include "host/cpu/scan/multiply_kernel.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <string>

#include "host/cpu/scan/query_limbs.h"
#include "src/base/errors.h"

namespace blindfuse {

namespace {

// The kernels are in the order in which they are usually fast.
constexpr std::array kKernels = {
#if defined(__x86_64__)
    &kMultiplyAmx,      &kMultiplyAvx512Vnni, &kMultiplyAvxVnni, &kMultiplyAvx512, &kMultiplyAvx2,
#elif defined(__aarch64__)
    &kMultiplyNeonDotprod,
#endif
    &kMultiplyPortable,
};

}  // namespace

std::span<const MultiplyKernel* const> multiply_kernels() { return kKernels; }

namespace {

// Seconds for 192 columns of one block and 32 queries: wide and long enough for the processor to
// show what it does for more, and a fraction of a millisecond.
double measure_seconds(const MultiplyKernel& kernel) {
  constexpr size_t kRows = Matrix::kBlockRows, kColumns = 192, kQueries = 32;
  // The matrix is written to: untouched memory is one page of zeros at many addresses, which caches
  // handle badly.
  static const Matrix matrix = [] {
    Matrix written(kRows, kColumns);
    written.set_columns(0, std::vector<uint8_t>(kRows * kColumns, 0x9d));
    return written;
  }();
  const std::vector<uint32_t> words(kRows * kQueries, 0x89abcdef);
  std::vector<uint32_t> products(kQueries * kColumns);
  QueryLimbs queries(kernel);
  queries.cut({words.data(), kQueries, kRows}, {0, kRows}, 0);
  MultiplyArgs args = queries.args();
  args.tiles = matrix.tile(0, 0);
  args.next = args.tiles;
  args.tile_stride = kTileColumns * kRows;
  args.column_count = kColumns;
  args.products = products.data();
  args.product_stride = kColumns;
  double least = 1e9;
  for (int i = 0; i < 4; ++i) {  // the first warms up; others may be disturbed
    const auto start = std::chrono::steady_clock::now();
    kernel.multiply(args);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    least = std::min(least, seconds.count());
  }
  return least;
}

const MultiplyKernel& measure_fastest() {
  std::vector<const MultiplyKernel*> usable = usable_kernels();
  // The portable kernel is slow, and is only chosen where it is alone.
  if (usable.size() > 1) usable.pop_back();
  std::vector<double> seconds;
  for (const MultiplyKernel* kernel : usable) seconds.push_back(measure_seconds(*kernel));
  return *usable[static_cast<size_t>(std::ranges::min_element(seconds) - seconds.begin())];
}

}  // namespace

std::vector<const MultiplyKernel*> usable_kernels() {
  std::vector<const MultiplyKernel*> usable;
  std::ranges::copy_if(multiply_kernels(), std::back_inserter(usable),
                       [](const MultiplyKernel* kernel) { return kernel->runs_here(); });
  return usable;
}

const MultiplyKernel& choose_kernel(std::string_view name) {
  if (name.empty()) {
    static const MultiplyKernel& fastest = measure_fastest();
    return fastest;
  }
  std::string known;
  for (const MultiplyKernel* kernel : usable_kernels()) {
    if (name == kernel->name) return *kernel;
    known += (known.empty() ? "" : ", ") + std::string(kernel->name);
  }
  throw UsageError("there is no CPU kernel \"" + std::string(name) +
                   "\" that this machine runs; it runs " + known);
}

}  // namespace blindfuse
