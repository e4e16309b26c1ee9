#include "cuda/scan/scanner.h"

#include <algorithm>
#include <string>

#include "cuda/scan/scan_kernels.h"
#include "src/base/errors.h"

namespace blindfuse {
namespace {

// Below this a scan takes no time that matters, and none that could be measured.
constexpr uint64_t kCalibrationBytesMin = 64 << 20;

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

std::vector<std::string_view> Scanner::kernel_names() {
  std::vector<std::string_view> names = {"dp4a", "mma", "mma-rows"};
  if (has_wgmma()) names.push_back("wgmma");
  if (CublasProduct::is_there()) names.push_back("cublas");
  return names;
}

std::string Scanner::choice() const {
  if (kernel_ != Kernel::kAuto) return "";
  const std::string many = many_ == Kernel::kWgmma ? "wgmma" : "mma";
  if (dp4a_max_ == 0) return ", " + many + " for all batches";
  return ", dp4a for batches of up to " + std::to_string(dp4a_max_) + " and " + many +
         " for others";
}

Scanner::Scanner(const DeviceMatrix& matrix, std::string_view kernel,
                 std::shared_ptr<const KernelRecord> record)
    : matrix_(matrix),
      record_(std::move(record)),
      kernel_(kernel_named(kernel)),
      dp4a_max_(kScanDp4aQueriesMax) {
  if (kernel_ == Kernel::kCublas) cublas_ = std::make_unique<CublasProduct>();
}

Scanner::Kernel Scanner::kernel_named(std::string_view name) {
  if (name.empty()) return Kernel::kAuto;
  if (name == "dp4a") return Kernel::kDp4a;
  if (name == "mma") return Kernel::kMma;
  if (name == "mma-rows") return Kernel::kMmaRows;
  if (name == "wgmma") {
    if (!has_wgmma()) {
      throw UsageError(
          "the kernel cuda:wgmma needs a GPU of compute capability 9.0, and CUDA_FORCE_PTX_JIT "
          "unset");
    }
    return Kernel::kWgmma;
  }
  if (name == "cublas") {
    CublasProduct::require();
    return Kernel::kCublas;
  }
  throw UsageError("there is no CUDA kernel \"" + std::string(name) +
                   "\"; there are dp4a, mma, mma-rows, wgmma and cublas");
}

uint32_t Scanner::step_count(RowRange rows) {
  if (rows.size() == 0) return 0;
  return static_cast<uint32_t>((rows.last + kStepRows - 1) / kStepRows - rows.first / kStepRows);
}

ScanArgs Scanner::args(const Limbs& limbs, uint32_t query_count, RowRange rows,
                       uint32_t* products) const {
  ScanArgs args{};
  args.columns = matrix_.data() + rows.first / kStepRows * kStepRows;
  args.column_pitch = matrix_.pitch();
  args.column_count = static_cast<uint32_t>(matrix_.column_count());
  args.step_count = step_count(rows);
  args.limbs = limbs.bytes;
  args.limb_pitch = limbs.pitch;
  args.query_count = query_count;
  args.products = products;
  args.product_pitch = matrix_.column_count();
  return args;
}

uint64_t Scanner::bytes_for(uint64_t query_count) const {
  if (kernel_ != Kernel::kCublas) return 0;
  return CublasProduct::sum_bytes(query_count, matrix_.column_count());
}

void Scanner::start(Choice choice, const Limbs& limbs, uint32_t query_count, RowRange rows,
                    uint32_t* products, cudaStream_t stream) {
  if (matrix_.column_count() == 0 || rows.size() == 0 || query_count == 0) return;
  invariant(limbs.order == choice.order, "limbs are in the order of their kernel");
  start_kernel(choice.kernel, args(limbs, query_count, rows, products), stream);
}

std::string_view Scanner::name_of(Kernel kernel) {
  switch (kernel) {
    case Kernel::kDp4a:
      return "dp4a";
    case Kernel::kAuto:
    case Kernel::kMma:
      return "mma";
    case Kernel::kMmaRows:
      return "mma-rows";
    case Kernel::kWgmma:
      return "wgmma";
    case Kernel::kCublas:
      return "cublas";
  }
  return "";
}

Scanner::Kernel Scanner::preferred(uint32_t query_count) const {
  if (kernel_ != Kernel::kAuto) return kernel_;
  return query_count <= dp4a_max_ ? Kernel::kDp4a : many_;
}

Scanner::Choice Scanner::choose(uint32_t query_count) const {
  Kernel kernel = preferred(query_count);
  if (!is_fit(kernel)) {
    if (kernel_ != Kernel::kAuto) {
      const std::string name(name_of(kernel));
      throw DeviceLostError("the kernel cuda:" + name +
                            " is in quarantine: " + record_->why_unfit(name).value_or("") +
                            "; --engine cuda takes another one, --engine cpu none of the device");
    }
    constexpr Kernel kOrder[] = {Kernel::kWgmma, Kernel::kMma, Kernel::kDp4a};
    const auto* next = std::ranges::find_if(kOrder, [&](Kernel other) {
      return is_fit(other) && (other != Kernel::kWgmma || many_ == Kernel::kWgmma);
    });
    if (next == std::end(kOrder)) {
      throw DeviceLostError("every kernel of the device is in quarantine; the log above says why");
    }
    kernel = *next;
  }
  return {kernel, order_of(kernel)};
}

LimbOrder Scanner::order_of(Kernel kernel) {
  switch (kernel) {
    case Kernel::kAuto:
    case Kernel::kMma:
      return LimbOrder::kMma;
    case Kernel::kWgmma:
      return LimbOrder::kWgmma;
    case Kernel::kDp4a:
    case Kernel::kMmaRows:
    case Kernel::kCublas:
      return LimbOrder::kRows;
  }
  return LimbOrder::kRows;
}

void Scanner::start_kernel(Kernel kernel, const ScanArgs& args, cudaStream_t stream) {
  switch (kernel) {
    case Kernel::kDp4a:
      return start_scan_dp4a(args, stream);
    case Kernel::kAuto:
    case Kernel::kMma:
      return start_scan_mma(args, stream);
    case Kernel::kMmaRows:
      return start_scan_mma_rows(args, stream);
    case Kernel::kWgmma:
      return start_scan_wgmma(args, stream);
    case Kernel::kCublas:
      return cublas_->start(args, stream);
  }
}

void Scanner::calibrate() {
  if (kernel_ != Kernel::kAuto || calibrated_) return;
  if (matrix_.pitch() * matrix_.column_count() < kCalibrationBytesMin) return;
  // A batch that both can take whole.
  if (has_wgmma() && milliseconds(Kernel::kWgmma, kScanMmaQueriesMax) <=
                         milliseconds(Kernel::kMma, kScanMmaQueriesMax)) {
    many_ = Kernel::kWgmma;
  }
  dp4a_max_ = 0;
  while (dp4a_max_ < kScanDp4aQueriesMax &&
         milliseconds(Kernel::kDp4a, dp4a_max_ + 1) <= milliseconds(many_, dp4a_max_ + 1)) {
    ++dp4a_max_;
  }
  calibrated_ = true;
}

// The least of three, after one that warms up. Limbs are zero; integer products take the same time
// whatever they multiply, but for the power that they draw.
double Scanner::milliseconds(Kernel kernel, uint32_t query_count) {
  const RowRange rows{0, matrix_.row_count()};
  const DeviceMemory<int8_t> limbs(limb_rows_for(query_count) * matrix_.pitch());
  const DeviceMemory<uint32_t> products(query_count * matrix_.column_count());
  BLINDFUSE_CUDA(cudaDeviceSynchronize());
  const Stream stream;
  Timer timer(stream.get());
  double least = 1e9;
  for (int i = 0; i < 4; ++i) {
    timer.begin();
    start_kernel(kernel, args({limbs.data(), matrix_.pitch()}, query_count, rows, products.data()),
                 stream.get());
    const double taken = timer.end();
    if (i > 0) least = std::min(least, taken);
  }
  return least;
}

}  // namespace blindfuse
