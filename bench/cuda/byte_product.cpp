#include "bench/cuda/byte_product.h"

#include <dlfcn.h>
#include <library_types.h>

#include <string>
#include <type_traits>

#include "src/base/errors.h"

namespace blindfuse::bench {

namespace {

// The values are those of cublas_api.h in every version for CUDA 12 and 13.
constexpr int kNotTransposed = 0, kTransposed = 1;  // cublasOperation_t
constexpr int kSums32 = 72;                         // CUBLAS_COMPUTE_32I
constexpr int kAnyAlgorithm = -1;                   // CUBLAS_GEMM_DEFAULT

}  // namespace

// The functions used, by their names, and a handle.
struct ByteProduct::Library {
  int (*create)(void** handle);
  int (*destroy)(void* handle);
  int (*set_stream)(void* handle, cudaStream_t stream);
  int (*gemm)(void* handle, int a_operation, int b_operation, int m, int n, int k,
              const void* alpha, const void* a, cudaDataType a_type, int lda, const void* b,
              cudaDataType b_type, int ldb, const void* beta, void* c, cudaDataType c_type, int ldc,
              int compute_type, int algorithm);
  const char* (*status_string)(int status);
  void* handle = nullptr;

  Library() {
    const std::string name = "libcublas.so." + std::to_string(CUDART_VERSION / 1000);
    void* const loaded = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (loaded == nullptr) throw UsageError("cuBLAS is not here: " + std::string(dlerror()));
    const auto load = [&](const char* symbol, auto& function) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(loaded, symbol));
      if (function == nullptr) throw ResourceError(name + " has no " + symbol);
    };
    load("cublasCreate_v2", create);
    load("cublasDestroy_v2", destroy);
    load("cublasSetStream_v2", set_stream);
    load("cublasGemmEx", gemm);
    load("cublasGetStatusString", status_string);
    check(create(&handle), "cublasCreate");
  }
  ~Library() { destroy(handle); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  void check(int status, const char* call) const {
    if (status == 0) return;
    throw ResourceError(std::string(call) + " failed: " + status_string(status));
  }
};

ByteProduct::ByteProduct(int side, int depth)
    : side_(side),
      depth_(depth),
      sums_(static_cast<uint64_t>(side) * static_cast<uint64_t>(side)),
      library_(std::make_unique<const Library>()) {}
ByteProduct::~ByteProduct() = default;

void ByteProduct::start(const int8_t* a, const int8_t* b, cudaStream_t stream) const {
  const int32_t one = 1, zero = 0;
  library_->check(library_->set_stream(library_->handle, stream), "cublasSetStream");
  library_->check(library_->gemm(library_->handle, kTransposed, kNotTransposed, side_, side_,
                                 depth_, &one, a, CUDA_R_8I, depth_, b, CUDA_R_8I, depth_, &zero,
                                 sums_.data(), CUDA_R_32I, side_, kSums32, kAnyAlgorithm),
                  "cublasGemmEx");
}

}  // namespace blindfuse::bench
