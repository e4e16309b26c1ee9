#include "cuda/device/driver_library.h"

#include <dlfcn.h>

namespace blindfuse {

bool is_cuda_driver_installed() {
  void* const library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return false;
  dlclose(library);
  return true;
}

}  // namespace blindfuse
