// Comparisons of products with Thrust on the processor, and the stand-in for the runtime.
#define THRUST_DEVICE_SYSTEM THRUST_DEVICE_SYSTEM_CPP
#include "cuda/checks/product_check.cu"
