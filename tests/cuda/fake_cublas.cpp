// No cuBLAS next to the stand-in for the runtime.
#include "cuda/scan/cublas_product.h"
#include "src/base/errors.h"

namespace blindfuse {

struct CublasProduct::Work {};

bool CublasProduct::is_there() { return false; }
void CublasProduct::require() { throw UsageError("there is no cuBLAS here"); }
CublasProduct::CublasProduct() { require(); }
CublasProduct::~CublasProduct() = default;
uint64_t CublasProduct::sum_bytes(uint64_t, uint64_t) { return 0; }
uint64_t CublasProduct::held_bytes() const { return 0; }
void CublasProduct::start(const ScanArgs&, uint64_t, cudaStream_t) {}

}  // namespace blindfuse
