// Turns errors of cuBLAS into exceptions.
#pragma once

#include <cublas_v2.h>

#include <string>

namespace blindfuse {

// call: the function that returned the status; text: the library's words for it. Throws
// ResourceError if memory is short, and DeviceLostError for any other error. cuBLAS reports a lost
// device as a want of memory too (CUBLAS_STATUS_ALLOC_FAILED), so the device is asked.
void check_cublas(cublasStatus_t status, const std::string& call, const char* text);

}  // namespace blindfuse
