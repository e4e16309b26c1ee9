#include "cuda/scan/cublas_product.h"

#include <cublas_v2.h>
#include <dlfcn.h>

#include <algorithm>
#include <string>

#include "cuda/device/device_loss.h"
#include "cuda/device/memory.h"
#include "cuda/device/stream.h"
#include "cuda/scan/cublas_status.h"
#include "cuda/scan/scan_kernels.h"
#include "src/base/errors.h"

namespace blindfuse {
namespace {

// Signed bytes times signed bytes are at most 2^14: over this many rows no sum leaves 31 bits,
// whether the library's kernels saturate or not.
constexpr uint64_t kRowsAtOnce = 1 << 16;
// cuBLAS wants multiples of four; the matrix has such a number of columns in memory
// (cuda/scan/device_matrix.cpp).
constexpr uint64_t kColumnGrain = 4;
// Sums that are held at a time.
constexpr uint64_t kSumBytesMax = uint64_t{1} << 30;

// What is held of the products of four queries' limbs, some fours at a time.
struct Sums {
  uint64_t pitch;  // columns
  uint64_t fours;
  uint64_t fours_max;  // at a time

  uint64_t count() const { return std::min(fours, fours_max) * kLimbRowsInFour * pitch; }
  // The largest count() of any of these columns, of which more fours may fit at a time.
  uint64_t count_max() const {
    return std::min(fours * kLimbRowsInFour * pitch,
                    std::max(kLimbRowsInFour * pitch, kSumBytesMax / sizeof(int32_t)));
  }
};

Sums sums_for(uint64_t query_count, uint64_t column_count) {
  const uint64_t pitch = (column_count + kColumnGrain - 1) / kColumnGrain * kColumnGrain;
  const uint64_t four_bytes = pitch * kLimbRowsInFour * sizeof(int32_t);
  return {pitch, (query_count + kQueriesInFour - 1) / kQueriesInFour,
          std::max(uint64_t{1}, kSumBytesMax / std::max(uint64_t{1}, four_bytes))};
}

std::string library_name() { return "libcublas.so." + std::to_string(CUBLAS_VER_MAJOR); }

}  // namespace

// The functions used, by their names.
class CublasProduct::Library {
 public:
  static const Library& get() {
    static const Library library;
    return library;
  }

  decltype(&cublasCreate_v2) create;
  decltype(&cublasDestroy_v2) destroy;
  decltype(&cublasSetStream_v2) set_stream;
  // One of several of this name, so that decltype does not know which.
  cublasStatus_t (*gemm)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                         const void* alpha, const void* a, cudaDataType, int lda, const void* b,
                         cudaDataType, int ldb, const void* beta, void* c, cudaDataType, int ldc,
                         cublasComputeType_t, cublasGemmAlgo_t);
  decltype(&cublasGetStatusString) status_string;

  void check(cublasStatus_t status, const char* call) const {
    check_cublas(status, call, status_string(status));
  }

 private:
  Library() {
    void* handle = dlopen(library_name().c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      throw UsageError("the kernel cuda:cublas needs " + library_name() + ": " + dlerror());
    }
    load(handle, "cublasCreate_v2", create);
    load(handle, "cublasDestroy_v2", destroy);
    load(handle, "cublasSetStream_v2", set_stream);
    load(handle, "cublasGemmEx", gemm);
    load(handle, "cublasGetStatusString", status_string);
  }

  template <typename Function>
  static void load(void* handle, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(handle, name));
    if (function == nullptr) throw ResourceError(library_name() + " has no " + name);
  }
};

struct CublasProduct::Work {
  const Library& library = Library::get();
  cublasHandle_t handle = nullptr;
  DeviceMemory<int32_t> sums;
  Event sums_free;  // the last product has read them

  Work() { library.check(library.create(&handle), "cublasCreate"); }
  ~Work() {
    if (!is_device_lost()) library.destroy(handle);
  }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
};

bool CublasProduct::is_there() {
  try {
    Library::get();
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

void CublasProduct::require() { Library::get(); }

CublasProduct::CublasProduct() : work_(std::make_unique<Work>()) {}
CublasProduct::~CublasProduct() = default;

uint64_t CublasProduct::sum_bytes(uint64_t query_count, uint64_t column_count) {
  return sums_for(query_count, column_count).count_max() * sizeof(int32_t);
}

uint64_t CublasProduct::held_bytes() const { return work_->sums.size() * sizeof(int32_t); }

void CublasProduct::start(const ScanArgs& args, uint64_t columns_there, cudaStream_t stream) {
  const Library& library = work_->library;
  library.check(library.set_stream(work_->handle, stream), "cublasSetStream");
  work_->sums_free.hold(stream);
  const Sums sums = sums_for(args.query_count, args.column_count);
  const uint64_t sum_count = sums.count();
  // Where there are not as many columns after the last one, the sums begin before the first.
  const uint64_t before = sums.pitch - std::min(sums.pitch, columns_there);
  const int8_t* const columns = args.columns - before * args.column_pitch;
  if (work_->sums.size() < sum_count) {
    work_->sums_free.wait();  // what is replaced may be in use
    work_->sums = {};         // not both at the same time
    work_->sums = DeviceMemory<int32_t>(sum_count);
    BLINDFUSE_CUDA(cudaDeviceSynchronize());
  }
  const uint64_t rows = uint64_t{args.step_count} * kStepRows;
  for (uint64_t four = 0; four < sums.fours; four += sums.fours_max) {
    const auto first_query = static_cast<uint32_t>(four * kQueriesInFour);
    const auto limb_rows =
        static_cast<int>(std::min(sums.fours_max, sums.fours - four) * kLimbRowsInFour);
    const uint32_t queries =
        std::min(args.query_count - first_query, static_cast<uint32_t>(limb_rows) / 4);
    for (uint64_t row = 0; row < rows; row += kRowsAtOnce) {
      const auto depth = static_cast<int>(std::min(kRowsAtOnce, rows - row));
      const int32_t one = 1, zero = 0;
      // Column-major, as cuBLAS sees it: (columns x rows) = (rows x columns) transposed, times rows
      // x limb rows.
      library.check(
          library.gemm(work_->handle, CUBLAS_OP_T, CUBLAS_OP_N, static_cast<int>(sums.pitch),
                       limb_rows, depth, &one, columns + row, CUDA_R_8I,
                       static_cast<int>(args.column_pitch),
                       args.limbs + four * kLimbRowsInFour * args.limb_pitch + row, CUDA_R_8I,
                       static_cast<int>(args.limb_pitch), &zero, work_->sums.data(), CUDA_R_32I,
                       static_cast<int>(sums.pitch), CUBLAS_COMPUTE_32I, CUBLAS_GEMM_DEFAULT),
          "cublasGemmEx");
      start_combine({work_->sums.data() + before, sums.pitch, args.column_count,
                     args.products + first_query * args.product_pitch, args.product_pitch},
                    queries, stream);
    }
  }
  work_->sums_free.record(stream);
}

}  // namespace blindfuse
