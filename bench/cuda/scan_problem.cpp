#include "bench/cuda/scan_problem.h"

#include <algorithm>
#include <iterator>

#include "cuda/scan/scan_kernels.h"

namespace blindfuse::bench {
namespace {

constexpr uint64_t kPanelRows = 64;

// Words, limbs and products of the queries, and some for the sums of cuBLAS and for CUDA itself.
uint64_t bytes_beside(const Shape& shape, size_t batch) {
  constexpr uint64_t kSpare = uint64_t{512} << 20;
  const uint64_t rows = shape.rows + kStepRows;
  return batch * rows * sizeof(uint32_t) +
         std::size(kLimbOrders) * limb_rows_for(static_cast<uint32_t>(batch)) * rows +
         batch * shape.columns * sizeof(uint32_t) + kSpare;
}

}  // namespace

ScanProblem::ScanProblem(const Shape& shape, size_t batch_max, int device,
                         const RandomBytes& random, WorkerThreads& threads)
    : matrix_(device, shape.rows, shape.columns, bytes_beside(shape, batch_max)),
      products_(batch_max * shape.columns) {
  for (DeviceMemory<int8_t>& limbs : limbs_) {
    limbs = DeviceMemory<int8_t>(limb_rows_for(static_cast<uint32_t>(batch_max)) * matrix_.pitch());
  }
  fill_columns(random, shape, threads, [&](uint64_t first, std::span<const uint8_t> bytes) {
    matrix_.set_columns(first, bytes);
  });
  matrix_.check();
  cut_queries(shape, batch_max, random);
}

void ScanProblem::cut_queries(const Shape& shape, size_t count, const RandomBytes& random) {
  const DeviceMemory<uint32_t> words(count * shape.rows);
  for (size_t q = 0; q < count; ++q) {
    const std::span<const uint8_t> bytes = query(random, shape, q);
    BLINDFUSE_CUDA(cudaMemcpy(words.data() + q * shape.rows, bytes.data(), bytes.size(),
                              cudaMemcpyHostToDevice));
  }
  BLINDFUSE_CUDA(cudaDeviceSynchronize());  // all is there, and the limbs and products are cleared
  for (const LimbOrder order : kLimbOrders) {
    start_cut(PlainWords{words.data(), shape.rows, kPanelRows, shape.rows, 0},
              static_cast<uint32_t>(count), limbs(order), stream_.get());
  }
  stream_.wait();
}

Limbs ScanProblem::limbs(LimbOrder order) const {
  const auto place = std::ranges::find(kLimbOrders, order) - std::begin(kLimbOrders);
  return {limbs_[place].data(), matrix_.pitch(), order};
}

std::unique_ptr<Scanner> ScanProblem::make_scanner(const std::string& kernel) const {
  auto scanner =
      std::make_unique<Scanner>(matrix_, kernel_argument(kernel), std::make_shared<KernelRecord>());
  scanner->calibrate();
  return scanner;
}

void ScanProblem::start(Scanner& scanner, size_t batch) {
  const auto count = static_cast<uint32_t>(batch);
  const Scanner::Choice choice = scanner.choose(count);
  scanner.start(choice, limbs(choice.order), count, {0, matrix_.row_count()}, products_.data(),
                stream_.get());
}

std::vector<uint32_t> ScanProblem::products(Scanner& scanner, size_t batch) {
  std::vector<uint32_t> products(batch * matrix_.column_count());
  const uint64_t byte_count = products.size() * sizeof(uint32_t);
  BLINDFUSE_CUDA(cudaMemsetAsync(products_.data(), 0, byte_count, stream_.get()));
  start(scanner, batch);
  BLINDFUSE_CUDA(cudaMemcpyAsync(products.data(), products_.data(), byte_count,
                                 cudaMemcpyDeviceToHost, stream_.get()));
  stream_.wait();
  return products;
}

}  // namespace blindfuse::bench
