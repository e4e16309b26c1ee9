#include "bench/cuda/scan_problem.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "cuda/checks/product_check.h"
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

// Multiplies a query with columns of bytes: one word for each column, modulo 2^32.
void multiply(std::span<const uint32_t> query, std::span<const uint8_t> columns,
              uint32_t* products) {
  for (size_t c = 0; c < columns.size() / query.size(); ++c) {
    const uint8_t* const column = columns.data() + c * query.size();
    uint32_t sum = 0;
    for (size_t r = 0; r < query.size(); ++r) {
      sum += query[r] * static_cast<uint32_t>(static_cast<int8_t>(column[r]));
    }
    products[c] = sum;
  }
}

}  // namespace

ScanProblem::ScanProblem(const Shape& shape, size_t batch_max, int device,
                         const RandomBytes& random, WorkerThreads& threads)
    : matrix_(device, shape.rows, shape.columns, bytes_beside(shape, batch_max)),
      product_(shape.columns),
      products_(batch_max * shape.columns) {
  for (DeviceMemory<int8_t>& limbs : limbs_) {
    limbs = DeviceMemory<int8_t>(limb_rows_for(static_cast<uint32_t>(batch_max)) * matrix_.pitch());
  }
  const std::span<const uint32_t> query = random.words(shape.rows, shape.columns);
  std::vector<uint32_t> product(shape.columns);
  fill_columns(random, shape, threads, [&](uint64_t first, std::span<const uint8_t> bytes) {
    matrix_.set_columns(first, bytes);
    multiply(query, bytes, product.data() + first);
  });
  matrix_.check();
  BLINDFUSE_CUDA(cudaMemcpy(product_.data(), product.data(), product.size() * sizeof(uint32_t),
                            cudaMemcpyHostToDevice));
  cut_queries(query, static_cast<uint32_t>(batch_max));
}

void ScanProblem::cut_queries(std::span<const uint32_t> query, uint32_t count) {
  const DeviceMemory<uint32_t> one(query.size()), words(count * query.size());
  BLINDFUSE_CUDA(cudaMemcpy(one.data(), query.data(), query.size_bytes(), cudaMemcpyHostToDevice));
  BLINDFUSE_CUDA(cudaDeviceSynchronize());  // all is there, and the limbs and products are cleared
  start_odd_multiples(one.data(), query.size(), 0, count, words.data(), stream_.get());
  for (const LimbOrder order : kLimbOrders) {
    start_cut(PlainWords{words.data(), query.size(), kPanelRows, query.size(), 0}, count,
              limbs(order), stream_.get());
  }
  stream_.wait();
}

Limbs ScanProblem::limbs(LimbOrder order) const {
  const auto place = std::ranges::find(kLimbOrders, order) - std::begin(kLimbOrders);
  return {limbs_[place].data(), matrix_.pitch(), order};
}

std::unique_ptr<Scanner> ScanProblem::make_scanner(const std::string& kernel) const {
  auto scanner = std::make_unique<Scanner>(matrix_, kernels_of(kernel));
  scanner->calibrate();
  return scanner;
}

void ScanProblem::start(Scanner& scanner, size_t batch) {
  const auto count = static_cast<uint32_t>(batch);
  const Scanner::Choice choice = scanner.choose(count);
  scanner.start(choice, limbs(choice.order), count, {0, matrix_.row_count()}, products_.data(),
                stream_.get());
}

Check ScanProblem::check(Scanner& scanner, size_t batch) {
  const uint64_t columns = matrix_.column_count();
  Check check;
  check.product_count = batch * columns;
  BLINDFUSE_CUDA(
      cudaMemsetAsync(products_.data(), 0, check.product_count * sizeof(uint32_t), stream_.get()));
  start(scanner, batch);
  const ProductDifference& difference = check.difference = compare_products(
      products_.data(), product_.data(), columns, static_cast<uint32_t>(batch), stream_.get());
  if (difference.count == 0) return check;
  const auto read = [](const uint32_t* word) {
    uint32_t value = 0;
    BLINDFUSE_CUDA(cudaMemcpy(&value, word, sizeof value, cudaMemcpyDeviceToHost));
    return value;
  };
  check.found = read(products_.data() + difference.query * columns + difference.column);
  check.expected = (2 * difference.query + 1) * read(product_.data() + difference.column);
  return check;
}

}  // namespace blindfuse::bench
