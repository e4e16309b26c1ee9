#include "cuda/scan/cublas_status.h"

#include "cuda/device/check.h"
#include "cuda/device/device_loss.h"
#include "cuda/device/no_room.h"

namespace blindfuse {

void check_cublas(cublasStatus_t status, const std::string& call, const char* text) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  if (status == CUBLAS_STATUS_ALLOC_FAILED) throw_no_room("what " + call + " needs", text);
  lose_device(call + " failed: " + text);
}

void go_on_without_cublas() {
  BLINDFUSE_CUDA(cudaDeviceSynchronize());
  forget_lost_device();
}

}  // namespace blindfuse
