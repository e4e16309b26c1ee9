#include "cuda/scan/scanner.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "cuda/checks/product_check.h"
#include "cuda/device/device_loss.h"
#include "cuda/device/launch_trail.h"
#include "cuda/scan/scan_kernels.h"
#include "cuda/scan/trial_memory.h"

namespace blindfuse {
namespace {

// What an operator does where there is no room for what comes before a server answers.
constexpr const char* kStartAdvice =
    "end other processes that have memory of the device (nvidia-smi lists them), lower "
    "--batch-max, or use --engine cpu";

// Two points of a stream, and the time between them.
class Timer {
 public:
  // By way of the default one, so that what is thrown here destroys what there is.
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
  if (kernel_ != Kernel::kAuto) return "";
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

Scanner::Scanner(const DeviceMatrix& matrix, std::string_view kernel,
                 std::shared_ptr<KernelRecord> record, std::shared_ptr<Calibrations> calibrations)
    : matrix_(matrix),
      record_(std::move(record)),
      calibrations_(std::move(calibrations)),
      kernel_(scan_kernel_named(kernel)) {
  if (kernel_ == Kernel::kAuto) has_wgmma_ = has_wgmma();
}

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
  Kernel kernel = kernel_ == Kernel::kAuto ? calibration_.kernel_for(query_count) : kernel_;
  if (!is_fit(kernel)) {
    if (kernel_ != Kernel::kAuto) {
      const std::string name(name_of(kernel));
      throw DeviceLostError("the kernel cuda:" + name +
                            " is in quarantine: " + record_->why_unfit(name).value_or("") +
                            "; --engine cuda takes another one, --engine cpu none of the device");
    }
    const std::vector<Kernel> others = candidates();
    const auto next = std::ranges::find_if(others, [&](Kernel other) { return is_fit(other); });
    if (next == others.end()) {
      throw DeviceLostError("every kernel of the device is in quarantine; the log above says why");
    }
    kernel = *next;
  }
  return {kernel, limb_order_of(kernel)};
}

std::vector<Scanner::Kernel> Scanner::candidates() const {
  if (kernel_ != Kernel::kAuto) return {kernel_};
  if (!has_wgmma_) return {Kernel::kMma, Kernel::kDp4a};
  return {Kernel::kWgmmaTma, Kernel::kWgmma, Kernel::kMma, Kernel::kDp4a};
}

void Scanner::start_kernel(Kernel kernel, const ScanArgs& args, cudaStream_t stream) {
  switch (kernel) {
    case Kernel::kDp4a:
      return start_scan_dp4a(args, stream);
    case Kernel::kAuto:
    case Kernel::kMma:
      return start_scan_mma(args, stream);
    case Kernel::kWgmma:
      return start_scan_wgmma(args, stream);
    case Kernel::kWgmmaTma:
      return start_scan_wgmma_tma(args, stream);
  }
}

// Odd multiples of a canary's query, as limbs in one order.
struct Scanner::Trial {
  uint32_t query_count;
  Limbs limbs;
  const uint32_t* product;  // the canary's
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
  is_check_vector_right_ = false;
  check_vector_ = canary.weights.empty()
                      ? nullptr
                      : std::make_unique<CheckVector>(matrix_, canary.weights, canary.bucket_count);
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
  std::optional<LimbOrder> order;
  for (const Kernel kernel : candidates()) {
    if (!is_fit(kernel)) continue;
    const Trial trial{count,
                      {limbs.data(), matrix_.pitch(), limb_order_of(kernel)},
                      product.data(),
                      products.data(),
                      stream.get()};
    if (order != trial.limbs.order) {
      // A four of queries at a time: the words of all would take as much memory as the limbs.
      for (uint32_t first = 0; first < count; first += kQueriesInFour) {
        const uint32_t some = std::min(kQueriesInFour, count - first);
        start_odd_multiples(query.data(), rows, first, some, words.data(), stream.get());
        Limbs four = trial.limbs;
        four.bytes += limb_row(first, 0) * four.pitch;
        start_cut(PlainWords{words.data(), rows, 64, rows, 0}, some, four, stream.get());
      }
      order = trial.limbs.order;
    }
    check_kernel(kernel, trial);
  }
  stream.wait();
  choose(1);
  choose(count);
  if (check_vector_) make_check_vector(canary);
}

// Right where for each bucket the canary's words, weighted by it, are what its products are,
// weighted.
void Scanner::make_check_vector(const Canary& canary) {
  const std::vector<uint32_t> vector = check_vector_->compute();
  bool is_right = true;
  const size_t rows = canary.words.size();
  const size_t columns = canary.weights.size() / canary.bucket_count;
  for (size_t bucket = 0; bucket < canary.bucket_count; ++bucket) {
    uint32_t of_words = 0, of_products = 0;
    for (size_t r = 0; r < rows; ++r) of_words += canary.words[r] * vector[bucket * rows + r];
    for (size_t c = bucket * columns; c < (bucket + 1) * columns; ++c) {
      of_products += canary.products[c] * canary.weights[c];
    }
    is_right = is_right && of_words == of_products;
  }
  // Also where it is: a byte that changed since the last time, before the vector was made, would
  // have become what is right.
  if (!matrix_.is_as_sent()) {
    refuse_matrix("found when the vector was made that products are checked with");
  }
  if (!is_right) {
    const std::string why =
        "the vector that products are checked with is not what the host's product says";
    record_->note_failed(kWeighing, CheckStage::kMatrix, why);
    throw DeviceLostError("the GPU's " + std::string(kWeighing) + " is wrong: " + why);
  }
  record_->note_passed(kWeighing, CheckStage::kMatrix);
  is_check_vector_right_ = true;
}

void Scanner::blame(Kernel kernel, CheckStage stage, uint32_t query_count, const std::string& why) {
  require_matrix(why);
  const std::string name(name_of(kernel));
  record_->note_failed(name, stage, why);
  choose(query_count);  // throws where no kernel is left
  throw KernelReplacedError(
      "the kernel cuda:" + name + " is wrong: " + why +
      "; the responses of this batch are withheld, and another kernel takes its place");
}

void Scanner::check_kernel(Kernel kernel, const Trial& trial) {
  const uint64_t columns = matrix_.column_count();
  for (const uint32_t count : trial_batches_of(kernel, trial.query_count)) {
    launch_trail::note(trial.stream, "a check of cuda:" + std::string(name_of(kernel)) + " with " +
                                         std::to_string(count) + " queries");
    BLINDFUSE_CUDA(
        cudaMemsetAsync(trial.products, 0, count * columns * sizeof(uint32_t), trial.stream));
    start_kernel(kernel, args(trial.limbs, count, trial.products), trial.stream);
    const ProductDifference difference =
        compare_products(trial.products, trial.product, columns, count, trial.stream);
    launch_trail::forget(trial.stream, launch_trail::position());  // it has waited
    if (difference.count == 0) {
      record_->note_passed(name_of(kernel), CheckStage::kMatrix);
      continue;
    }
    const std::string why =
        std::to_string(difference.count) + " of " + std::to_string(count * columns) +
        " words of the products of " + std::to_string(count) +
        (count == 1 ? " query" : " queries") +
        " with the matrix differ from those that the host computed, first column " +
        std::to_string(difference.column) + " of query " + std::to_string(difference.query);
    require_matrix(why);
    record_->note_failed(name_of(kernel), CheckStage::kMatrix, why);
    return;
  }
}

void Scanner::require_matrix(const std::string& what) const {
  try {
    if (matrix_.is_as_sent()) return;
  } catch (const DeviceLostError&) {
    throw;
  } catch (const ResourceError&) {
    return;  // no memory for the checksum: the kernel is not to go on for that
  }
  refuse_matrix(what);
}

void Scanner::refuse_matrix(const std::string& what) {
  throw DeviceLostError("the matrix has changed in the device's memory: " + what +
                        "; nvidia-smi -q -d ECC counts errors of the memory");
}

void Scanner::calibrate() {
  if (kernel_ != Kernel::kAuto) return;
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
    for (const Kernel kernel : candidates()) {
      // More queries take dp4a several scans.
      if (kernel == Kernel::kDp4a && kTimedBatches[i] > kScanDp4aQueriesMax) continue;
      if (!is_fit(kernel)) continue;
      const double taken = milliseconds(kernel, kTimedBatches[i]);
      if (taken >= least) continue;
      least = taken;
      measured.fastest[i] = kernel;
    }
  }
  calibration_ = measured;
  calibrations_->store(rows, columns, measured);
}

// The least of two, after one that warms up. Limbs are random: what tensor cores draw, and so the
// clock that they keep, depends on what they multiply.
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
