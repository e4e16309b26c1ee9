#include "cuda/scan/scanner.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "cuda/checks/product_check.h"
#include "cuda/device/device_loss.h"
#include "cuda/scan/scan_kernels.h"
#include "cuda/scan/trial_memory.h"
#include "src/base/errors.h"

namespace blindfuse {
namespace {

// Advice when device memory is short before serving.
constexpr const char* kStartAdvice =
    "end other processes that have memory of the device (nvidia-smi lists them), lower "
    "--batch-max, or use --engine cpu";

// Two points of a stream, and the time between them.
class Timer {
 public:
  // Delegates to the default constructor, so that an exception here destroys the events that exist.
  explicit Timer(cudaStream_t stream) : Timer() {
    stream_ = stream;
    BLINDFUSE_CUDA(cudaEventCreate(&begin_));
    BLINDFUSE_CUDA(cudaEventCreate(&end_));
  }
  ~Timer() {
    if (is_device_lost()) return;
    (void)cudaEventDestroy(begin_);
    (void)cudaEventDestroy(end_);
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  void begin() { BLINDFUSE_CUDA(cudaEventRecord(begin_, stream_)); }
  double end() {
    BLINDFUSE_CUDA(cudaEventRecord(end_, stream_));
    BLINDFUSE_CUDA(cudaEventSynchronize(end_));
    float milliseconds = 0;
    BLINDFUSE_CUDA(cudaEventElapsedTime(&milliseconds, begin_, end_));
    return double{milliseconds};
  }

 private:
  Timer() = default;

  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

}  // namespace

std::string Scanner::choice() const {
  if (kernels_.size() == 1) return "";
  const auto& fastest = calibration_.fastest;
  std::string text;
  for (size_t i = 0; i < fastest.size(); ++i) {
    if (i + 1 < fastest.size() && fastest[i] == fastest[i + 1]) continue;
    text += ", " + std::string(name_of(fastest[i]));
    text += i + 1 == fastest.size()
                ? (text.find(" for ") == text.npos ? " for all batches" : " for others")
                : " for batches of up to " + std::to_string(kTimedBatches[i]);
  }
  return text;
}

Scanner::Scanner(const DeviceMatrix& matrix, const std::vector<std::string>& kernels,
                 std::shared_ptr<Calibrations> calibrations)
    : matrix_(matrix), calibrations_(std::move(calibrations)) {
  std::vector<Kernel> named;
  for (const std::string& name : kernels) named.push_back(scan_kernel_named(name));
  for (const Kernel kernel : {Kernel::kWgmmaTma, Kernel::kWgmma, Kernel::kMma, Kernel::kDp4a}) {
    const bool is_hopper = kernel == Kernel::kWgmmaTma || kernel == Kernel::kWgmma;
    if (named.empty() ? !is_hopper || has_wgmma() : std::ranges::count(named, kernel) > 0) {
      kernels_.push_back(kernel);
    }
  }
}

bool Scanner::may_use(Kernel kernel) const { return std::ranges::count(kernels_, kernel) > 0; }

uint32_t Scanner::step_count(RowRange rows) {
  if (rows.size() == 0) return 0;
  return static_cast<uint32_t>((rows.last + kStepRows - 1) / kStepRows - rows.first / kStepRows);
}

ScanArgs Scanner::args(const Limbs& limbs, uint32_t query_count, RowRange rows, ColumnRange columns,
                       Products products) const {
  ScanArgs args{};
  args.columns =
      matrix_.data() + columns.first * matrix_.pitch() + rows.first / kStepRows * kStepRows;
  args.column_pitch = matrix_.pitch();
  args.column_count = static_cast<uint32_t>(columns.count);
  args.step_count = step_count(rows);
  args.limbs = limbs.bytes;
  args.limb_pitch = limbs.pitch;
  args.query_count = query_count;
  args.products = products.words;
  args.product_pitch = products.pitch;
  return args;
}

void Scanner::start_columns(Choice choice, const Limbs& limbs, uint32_t query_count, RowRange rows,
                            ColumnRange columns, Products products, cudaStream_t stream) {
  if (columns.count == 0 || rows.size() == 0 || query_count == 0) return;
  invariant(limbs.order == choice.order, "limbs are in the order of their kernel");
  start_kernel(choice.kernel, args(limbs, query_count, rows, columns, products), stream);
}

Scanner::Choice Scanner::choose(uint32_t query_count) const {
  Kernel kernel = calibration_.kernel_for(query_count);
  if (!may_use(kernel)) kernel = kernels_.front();
  return {kernel, limb_order_of(kernel)};
}

void Scanner::start_kernel(Kernel kernel, const ScanArgs& args, cudaStream_t stream) {
  switch (kernel) {
    case Kernel::kDp4a:
      return start_scan_dp4a(args, stream);
    case Kernel::kMma:
      return start_scan_mma(args, stream);
    case Kernel::kWgmma:
      return start_scan_wgmma(args, stream);
    case Kernel::kWgmmaTma:
      return start_scan_wgmma_tma(args, stream);
  }
}

// The memory in which odd multiples of a canary's query are multiplied.
struct Scanner::Trial {
  const uint32_t* query;  // the canary's words and product
  const uint32_t* product;
  uint32_t* words;  // of four queries: those of all would take as much memory as the limbs
  int8_t* limbs;
  uint32_t* products;
  cudaStream_t stream;
};

void Scanner::check_kernels(const Canary& canary, size_t batch_max) {
  const uint64_t rows = matrix_.row_count(), columns = matrix_.column_count();
  if (rows == 0 || columns == 0) return;
  invariant(canary.words.size() == rows && canary.products.size() == columns,
            "a canary of the matrix");
  const uint32_t count = trial_queries(batch_max);
  require_room(
      trial_bytes(rows, columns, batch_max) +
          (canary.weights.empty() ? 0 : CheckVector::bytes_of(rows, columns, canary.bucket_count)),
      "the queries that the kernels are checked with", kStartAdvice);
  const DeviceMemory<uint32_t> query(rows), product(columns);
  const DeviceMemory<uint32_t> words(kQueriesInFour * rows), products(count * columns);
  const DeviceMemory<int8_t> limbs(limb_rows_for(count) * matrix_.pitch());
  BLINDFUSE_CUDA(cudaDeviceSynchronize());  // all is cleared
  const Stream stream;
  const auto send = [&](const DeviceMemory<uint32_t>& to, const std::vector<uint32_t>& from) {
    BLINDFUSE_CUDA(cudaMemcpyAsync(to.data(), from.data(), from.size() * sizeof(uint32_t),
                                   cudaMemcpyHostToDevice, stream.get()));
  };
  send(query, canary.words);
  send(product, canary.products);
  const Trial trial{query.data(), product.data(),  words.data(),
                    limbs.data(), products.data(), stream.get()};
  for (const uint32_t queries : kTimedBatches) {
    if (queries < count) check_kernel(trial, choose(queries).kernel, queries);
  }
  check_kernel(trial, choose(count).kernel, count);
  stream.wait();
  check_vector_ = nullptr;
  if (!canary.weights.empty()) make_check_vector(canary);
  // The check comes after all kernels have read the matrix: a byte that had changed before would
  // have become what is right.
  matrix_.check();
}

void Scanner::check_kernel(const Trial& trial, Kernel kernel, uint32_t query_count) {
  const uint64_t rows = matrix_.row_count(), columns = matrix_.column_count();
  const Limbs limbs{trial.limbs, matrix_.pitch(), limb_order_of(kernel)};
  for (uint32_t first = 0; first < query_count; first += kQueriesInFour) {
    const uint32_t some = std::min(kQueriesInFour, query_count - first);
    start_odd_multiples(trial.query, rows, first, some, trial.words, trial.stream);
    Limbs four = limbs;
    four.bytes += limb_row(first, 0) * four.pitch;
    start_cut(PlainWords{trial.words, rows, 64, rows, 0}, some, four, trial.stream);
  }
  BLINDFUSE_CUDA(
      cudaMemsetAsync(trial.products, 0, query_count * columns * sizeof(uint32_t), trial.stream));
  start_kernel(kernel, args(limbs, query_count, trial.products), trial.stream);
  const ProductDifference difference =
      compare_products(trial.products, trial.product, columns, query_count, trial.stream);
  if (difference.count == 0) return;
  lose_device("the kernel " + std::string(name_of(kernel)) + " is wrong: " +
              std::to_string(difference.count) + " of " + std::to_string(query_count * columns) +
              " words of the products of " + std::to_string(query_count) + " queries with the " +
              matrix_.shape() + " differ from the host's, the first in column " +
              std::to_string(difference.column) + " of query " + std::to_string(difference.query));
}

// The vector is right if, for each bucket, the canary's words weighted by it equal its weighted
// products.
void Scanner::make_check_vector(const Canary& canary) {
  auto check = std::make_unique<CheckVector>(matrix_, canary.weights, canary.bucket_count);
  const std::vector<uint32_t> vector = check->compute();
  const size_t rows = canary.words.size();
  const size_t columns = canary.weights.size() / canary.bucket_count;
  for (size_t bucket = 0; bucket < canary.bucket_count; ++bucket) {
    uint32_t of_words = 0, of_products = 0;
    for (size_t r = 0; r < rows; ++r) of_words += canary.words[r] * vector[bucket * rows + r];
    for (size_t c = bucket * columns; c < (bucket + 1) * columns; ++c) {
      of_products += canary.products[c] * canary.weights[c];
    }
    if (of_words != of_products) {
      lose_device("the kernel weigh_columns is wrong: the vector that products with the " +
                  matrix_.shape() + " are checked with is not what the host's product says");
    }
  }
  check_vector_ = std::move(check);
}

void Scanner::calibrate() {
  if (kernels_.size() == 1) return;
  const uint64_t rows = matrix_.row_count(), columns = matrix_.column_count();
  const uint64_t bytes = timing_bytes(rows, columns, calibrations_->bytes_min());
  if (bytes == 0) return;
  if (const auto measured = calibrations_->find(rows, columns)) {
    calibration_ = *measured;
    return;
  }
  require_room(bytes, "the queries that the kernels are timed with", kStartAdvice);
  Calibration measured = calibration_;
  for (size_t i = kTimedBatches.size(); i-- > 0;) {
    double least = std::numeric_limits<double>::infinity();
    for (const Kernel kernel : kernels_) {
      // dp4a needs several scans for more queries.
      if (kernel == Kernel::kDp4a && kTimedBatches[i] > kScanDp4aQueriesMax) continue;
      const double taken = milliseconds(kernel, kTimedBatches[i]);
      if (taken >= least) continue;
      least = taken;
      measured.fastest[i] = kernel;
    }
  }
  calibration_ = measured;
  calibrations_->store(rows, columns, measured);
}

// Returns the lesser time of two scans, after one that warms up. Limbs are random: the power that
// tensor cores draw, and so their clock, depends on the operands.
double Scanner::milliseconds(Kernel kernel, uint32_t query_count) {
  const DeviceMemory<int8_t> limbs(limb_rows_for(query_count) * matrix_.pitch());
  const DeviceMemory<uint32_t> products(query_count * matrix_.column_count());
  BLINDFUSE_CUDA(cudaDeviceSynchronize());
  const Stream stream;
  start_noise(reinterpret_cast<uint64_t*>(limbs.data()), limbs.size() / sizeof(uint64_t),
              stream.get());
  Timer timer(stream.get());
  double least = 1e9;
  for (int i = 0; i < 3; ++i) {
    timer.begin();
    start_kernel(
        kernel,
        args({limbs.data(), matrix_.pitch(), limb_order_of(kernel)}, query_count, products.data()),
        stream.get());
    const double taken = timer.end();
    if (i > 0) least = std::min(least, taken);
  }
  return least;
}

}  // namespace blindfuse
