// Turns errors of cuBLAS into exceptions.
#pragma once

#include <cublas_v2.h>

#include <string>

namespace blindfuse {

// call: the function that returned the status; text: the library's words for it. Throws
// ResourceError if memory is short, and DeviceLostError for any other error. cuBLAS reports a lost
// device as a want of memory too (CUBLAS_STATUS_ALLOC_FAILED), so the device is asked.
void check_cublas(cublasStatus_t status, const std::string& call, const char* text);

// For a caller of check_cublas() that does without cuBLAS after DeviceLostError. If the device
// still works, it does not count as lost any longer, so that memory is released again. Throws
// DeviceLostError if the device does not work.
void go_on_without_cublas();

}  // namespace blindfuse
