#include "bench/cuda/scan_bench.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>
#include <span>

#include "bench/cuda/stopwatch.h"
#include "cuda/checks/product_check.h"
#include "cuda/device/memory.h"
#include "cuda/device/stream.h"
#include "cuda/scan/device_matrix.h"
#include "cuda/scan/scan_kernels.h"
#include "cuda/scan/scanner.h"
#include "src/base/errors.h"

namespace blindfuse::bench {
namespace {

constexpr uint64_t kPanelRows = 64;

// Kernels want these orders.
inline constexpr LimbOrder kLimbOrders[] = {LimbOrder::kRows, LimbOrder::kWgmma, LimbOrder::kMma};

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

// A random matrix and queries, cut into limbs, in the device's memory, ready for a scan. Query q is
// 2 q + 1 times a random query modulo 2^32, so that the CPU's product with one query tells all
// products (cuda/checks/product_check.h).
class ScanProblem {
 public:
  // `device` is the current one. Throws ResourceError when it has no room for so much.
  ScanProblem(const Shape& shape, size_t batch_max, int device, const RandomBytes& random,
              WorkerThreads& threads);

  const DeviceMatrix& matrix() const { return matrix_; }
  const Stream& stream() const { return stream_; }

  // The kernel, or for "auto" what the engine would choose for this matrix.
  std::unique_ptr<Scanner> make_scanner(const std::string& kernel) const;

  // Puts a scan with the first `batch` queries into the stream: it adds to the products.
  void start(Scanner& scanner, size_t batch);
  // Scans with the first `batch` queries, and compares their products with the CPU's.
  Check check(Scanner& scanner, size_t batch);

 private:
  Limbs limbs(LimbOrder order) const;
  void cut_queries(std::span<const uint32_t> query, uint32_t count);

  DeviceMatrix matrix_;
  DeviceMemory<int8_t> limbs_[std::size(kLimbOrders)];  // in each of them
  DeviceMemory<uint32_t> product_;                      // of the random query, by the CPU
  DeviceMemory<uint32_t> products_;
  Stream stream_;
};

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

// Exclusive or of all words of a matrix of random bytes.
uint32_t folded_on_host(const Bench& bench, const Shape& shape) {
  invariant(shape.rows % sizeof(uint32_t) == 0, "columns of whole words");
  std::atomic<uint32_t> folded = 0;
  fill_columns(bench.random, shape, bench.threads, [&](uint64_t, std::span<const uint8_t> bytes) {
    uint32_t fold = 0;
    for (size_t i = 0; i < bytes.size(); i += sizeof fold) {
      uint32_t word = 0;
      std::memcpy(&word, bytes.data() + i, sizeof word);
      fold ^= word;
    }
    folded ^= fold;
  });
  return folded;
}

void check_read(const Bench& bench, const ScanProblem& problem) {
  const uint32_t expected = folded_on_host(bench, bench.options.check_shape());
  const uint32_t folded = bench.yardsticks.fold(problem.matrix());
  if (folded == expected) return;
  throw ResourceError("the yardstick of reads found " + std::to_string(folded) +
                      " as the exclusive or of all words; the host finds " +
                      std::to_string(expected));
}

class ScanTimer {
 public:
  ScanTimer(const Bench& bench, ScanProblem& problem)
      : bench_(bench), problem_(problem), stopwatch_(bench.options.sizes().lead_in_bytes) {}

  ScanTimes measure(Scanner& scanner, size_t batch) {
    std::vector<double> seconds;
    std::vector<Rates> rates;
    for (unsigned i = 0; i <= bench_.options.rounds; ++i) {
      const Rates these = bench_.yardsticks.measure(problem_.matrix());
      const double taken =
          stopwatch_.seconds(problem_.stream(), [&] { problem_.start(scanner, batch); });
      if (i == 0) continue;  // warms up
      rates.push_back(these);
      seconds.push_back(taken);
    }
    return {median(std::move(seconds)), median(rates), std::nullopt};
  }

 private:
  const Bench& bench_;
  ScanProblem& problem_;
  Stopwatch stopwatch_;
};

}  // namespace

std::vector<std::string> right_kernels(const Bench& bench) {
  const Shape& shape = bench.options.check_shape();
  ScanProblem problem(shape, bench.options.batches.back(), kDevice, bench.random, bench.threads);
  check_read(bench, problem);
  std::vector<std::string> right;
  for (const std::string& kernel : bench.kernels) {
    const auto scanner = problem.make_scanner(kernel);
    bool is_right = true;
    for (const size_t batch : bench.options.batches) {
      const Check check = problem.check(*scanner, batch);
      bench.report.print(shape, kernel, batch, check);
      is_right = is_right && check.difference.count == 0;
    }
    if (is_right) right.push_back(kernel);
  }
  bench.report.print_figure();
  return right;
}

ScanSeconds time_scans(const Bench& bench, const Shape& shape) {
  const std::vector<size_t>& batches = bench.options.batches;
  ScanProblem problem(shape, batches.back(), kDevice, bench.random, bench.threads);
  std::vector<std::unique_ptr<Scanner>> scanners;
  for (const std::string& kernel : bench.kernels) scanners.push_back(problem.make_scanner(kernel));
  ScanTimer timer(bench, problem);
  ScanSeconds all;
  std::optional<double> alone;
  for (const size_t batch : batches) {
    std::vector<ScanTimes> times;
    for (size_t k = 0; k < scanners.size(); ++k) {
      times.push_back(timer.measure(*scanners[k], batch));
      bench.report.print(shape, bench.kernels[k], batch, problem.check(*scanners[k], batch));
    }
    if (batch == 1) alone = std::ranges::min(times, {}, &ScanTimes::seconds).seconds;
    for (size_t k = 0; k < times.size(); ++k) {
      times[k].seconds_alone = alone;
      all[{bench.kernels[k], batch}] = times[k].seconds;
      bench.report.print(shape, bench.kernels[k], batch, times[k]);
    }
  }
  bench.report.print_figure();
  return all;
}

}  // namespace blindfuse::bench
