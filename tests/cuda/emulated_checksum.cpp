// Checksums with Thrust on the processor, and the stand-in for the runtime.
#define THRUST_DEVICE_SYSTEM THRUST_DEVICE_SYSTEM_CPP
#include "cuda/checks/checksum.cu"
