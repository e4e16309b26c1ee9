// A stand-in for the CUDA runtime, so that all of the CUDA engine runs on the CPU: device memory is
// the host's, and kernels are the emulator's (tests/cuda/emulator.h).
#include "tests/cuda/fake_runtime.h"

#include <cuda.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include "cuda/device/device_loss.h"
#include "cuda/device/driver_library.h"
#include "tests/cuda/fake_device.h"
#include "tests/cuda/fake_faults.h"
#include "tests/cuda/tensor_maps.h"

namespace blindfuse::fake_cuda {
namespace {

// Of the calling thread, as in CUDA.
thread_local cudaError_t last_error = cudaSuccess;

// What a call returns that has waited for work.
cudaError_t after_work() {
  const auto error = static_cast<cudaError_t>(lost());
  if (error != cudaSuccess) last_error = error;
  return error;
}

cudaError_t refused(cudaError_t error) {
  last_error = error;
  return error;
}

Queue* queue_of(cudaStream_t stream) { return reinterpret_cast<Queue*>(stream); }
Event* event_of(cudaEvent_t event) { return reinterpret_cast<Event*>(event); }

void put(cudaStream_t stream, std::function<void()> work) {
  Devices::get().put(queue_of(stream), {std::move(work)});
}

void require_current(int device) {
  if (device != current_device) {
    give_up("a stream or event of another than the current device is used");
  }
}

// cuTensorMapEncodeTiled, which the engine asks the driver for.
CUresult encode_tensor_map(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                           void* address, const cuuint64_t* sizes, const cuuint64_t* strides,
                           const cuuint32_t* box, const cuuint32_t* element_strides,
                           CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                           CUtensorMapL2promotion l2_promotion, CUtensorMapFloatOOBfill oob_fill) {
  emulator::TensorMapArguments arguments;
  arguments.data_type = type;
  arguments.rank = rank;
  arguments.address = address;
  const uint32_t dimensions = std::min(rank, emulator::kTensorRankMax);
  std::copy_n(sizes, dimensions, arguments.sizes);
  std::copy_n(strides, dimensions == 0 ? 0 : dimensions - 1, arguments.strides);
  std::copy_n(box, dimensions, arguments.box);
  std::copy_n(element_strides, dimensions, arguments.element_strides);
  arguments.interleave = interleave;
  arguments.swizzle = swizzle;
  arguments.l2_promotion = l2_promotion;
  arguments.oob_fill = oob_fill;
  return emulator::make_map(map, arguments).empty() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

cudaError_t begin(const char* call) {
  const auto error = static_cast<cudaError_t>(next_call(call));
  if (error != cudaSuccess) last_error = error;
  return error;
}

uint64_t allocated_bytes() { return Devices::get().allocated_bytes(); }
uint64_t peak_bytes(int device) { return Devices::get().peak_bytes(device); }
void reset_peaks() { Devices::get().reset_peaks(); }

void begin_anew() {
  Devices::get().begin_anew();
  forget_lost_device();
}

}  // namespace blindfuse::fake_cuda

bool blindfuse::is_cuda_driver_installed() { return true; }

using namespace blindfuse::fake_cuda;

// The functions that the engine calls, as cuda_runtime_api.h declares them.
extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  if (const cudaError_t error = begin("cudaGetDeviceCount")) return error;
  if (driver_version() < CUDART_VERSION / 1000 * 1000) return refused(cudaErrorInsufficientDriver);
  *count = device_count();
  return *count == 0 ? refused(cudaErrorNoDevice) : cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  if (const cudaError_t error = begin("cudaDriverGetVersion")) return error;
  *version = driver_version();
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (const cudaError_t error = begin("cudaSetDevice")) return error;
  if (device < 0 || device >= device_count()) return refused(cudaErrorInvalidDevice);
  current_device = device;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  if (const cudaError_t error = begin("cudaGetDevice")) return error;
  *device = current_device;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  if (const cudaError_t error = begin("cudaDeviceGetAttribute")) return error;
  if (attribute == cudaDevAttrComputeCapabilityMajor) {
    *value = capability_major();
  } else if (attribute == cudaDevAttrMultiProcessorCount) {
    *value = kProcessors;
  } else {
    return refused(cudaErrorInvalidValue);
  }
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int device) {
  if (const cudaError_t error = begin("cudaDeviceGetPCIBusId")) return error;
  std::snprintf(id, static_cast<size_t>(length), "0000:%02X:00.0", 0x1b + device);
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (const cudaError_t error = begin("cudaGetDeviceProperties")) return error;
  std::strcpy(properties->name, "emulator");
  properties->major = capability_major();
  properties->minor = 0;
  properties->multiProcessorCount = kProcessors;
  properties->totalGlobalMem = device_bytes();
  for (int i = 0; i < 16; ++i) properties->uuid.bytes[i] = static_cast<char>(0x10 * i + device);
  return cudaSuccess;
}
// What the engine asks the driver for.
cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** entry, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  if (const cudaError_t error = begin("cudaGetDriverEntryPointByVersion")) return error;
  const bool is_there = std::strcmp(symbol, "cuTensorMapEncodeTiled") == 0;
  *entry = is_there ? reinterpret_cast<void*>(&encode_tensor_map) : nullptr;
  *result = is_there ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}
#if CUDART_VERSION < 12050
cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** entry, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult* result) {
  return cudaGetDriverEntryPointByVersion(symbol, entry, 12000, flags, result);
}
#endif
cudaError_t cudaRuntimeGetVersion(int* version) {
  if (const cudaError_t error = begin("cudaRuntimeGetVersion")) return error;
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int, size_t) {
  if (const cudaError_t error = begin("cudaOccupancyMaxActiveBlocksPerMultiprocessor"))
    return error;
  *blocks = 2;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() {
  const cudaError_t error = std::exchange(last_error, cudaSuccess);
  return lost() != 0 ? static_cast<cudaError_t>(lost()) : error;
}
const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
#define BLINDFUSE_NAME(name) \
  case name:                 \
    return #name;
    BLINDFUSE_NAME(cudaErrorMemoryAllocation)
    BLINDFUSE_NAME(cudaErrorInsufficientDriver)
    BLINDFUSE_NAME(cudaErrorDevicesUnavailable)
    BLINDFUSE_NAME(cudaErrorNoDevice)
    BLINDFUSE_NAME(cudaErrorInvalidDevice)
    BLINDFUSE_NAME(cudaErrorIllegalAddress)
    BLINDFUSE_NAME(cudaErrorLaunchFailure)
    BLINDFUSE_NAME(cudaErrorSystemNotReady)
    BLINDFUSE_NAME(cudaErrorSystemDriverMismatch)
    BLINDFUSE_NAME(cudaErrorUnknown)
    BLINDFUSE_NAME(cudaErrorInitializationError)
    BLINDFUSE_NAME(cudaErrorMpsServerNotReady)
#undef BLINDFUSE_NAME
    default:
      return "cudaErrorOfTheEmulator";
  }
}
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorIllegalAddress ? "an illegal memory access was encountered"
                                          : "an error of the emulator";
}

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  if (const cudaError_t error = begin("cudaMalloc")) return error;
  *memory = Devices::get().allocate(current_device, bytes);
  return *memory == nullptr ? refused(cudaErrorMemoryAllocation) : cudaSuccess;
}
// Frees whatever it returns: what is lost with a context is not a leak.
cudaError_t cudaFree(void* memory) {
  const cudaError_t error = begin("cudaFree");
  if (memory != nullptr) Devices::get().free(memory);
  return error;
}
cudaError_t cudaMallocHost(void** memory, size_t bytes) {
  if (const cudaError_t error = begin("cudaMallocHost")) return error;
  *memory = Devices::get().allocate(kHost, bytes);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) {
  const cudaError_t error = begin("cudaFreeHost");
  if (memory != nullptr) Devices::get().free(memory);
  return error;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  if (const cudaError_t error = begin("cudaMemGetInfo")) return error;
  *free = Devices::get().free_bytes(current_device);
  *total = device_bytes();
  return cudaSuccess;
}
// On the default stream, which non-blocking ones do not wait for: done when the device is waited
// for, at the latest, and at once here.
cudaError_t cudaMemset(void* memory, int value, size_t bytes) {
  if (const cudaError_t error = begin("cudaMemset")) return error;
  Devices::get().require_on(current_device, memory);
  std::memset(memory, value, bytes);
  return cudaSuccess;
}
// The same, and what is copied is there when it returns.
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  if (const cudaError_t error = begin("cudaMemcpy")) return error;
  Devices::get().require_on(current_device, to);
  Devices::get().require_on(current_device, from);
  const CopyFault fault = next_copy("cudaMemcpy");
  if (fault != CopyFault::kDrop) std::memmove(to, from, bytes);
  if (fault == CopyFault::kAlter) *static_cast<char*>(to) ^= 1;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  if (const cudaError_t error = begin("cudaStreamCreateWithFlags")) return error;
  *stream = reinterpret_cast<cudaStream_t>(Devices::get().add_queue(current_device));
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const cudaError_t error = begin("cudaStreamDestroy");
  if (stream != nullptr) Devices::get().remove_queue(queue_of(stream));
  return error;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (const cudaError_t error = begin("cudaStreamSynchronize")) return error;
  Devices::get().finish(queue_of(stream));
  return after_work();
}
cudaError_t cudaDeviceSynchronize() {
  if (const cudaError_t error = begin("cudaDeviceSynchronize")) return error;
  Devices::get().finish_all(current_device);
  return after_work();
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  if (const cudaError_t error = begin("cudaMemcpyAsync")) return error;
  Devices::get().require_on(queue_of(stream)->device, to);
  Devices::get().require_on(queue_of(stream)->device, from);
  put(stream, [=, fault = next_copy("cudaMemcpyAsync")] {
    if (fault != CopyFault::kDrop) std::memcpy(to, from, bytes);
    if (fault == CopyFault::kAlter) *static_cast<char*>(to) ^= 1;
  });
  return cudaSuccess;
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind, cudaStream_t stream) {
  if (const cudaError_t error = begin("cudaMemcpy2DAsync")) return error;
  if (width > to_pitch || width > from_pitch) return refused(cudaErrorInvalidValue);
  Devices::get().require_on(queue_of(stream)->device, to);
  Devices::get().require_on(queue_of(stream)->device, from);
  put(stream, [=, fault = next_copy("cudaMemcpy2DAsync")] {
    if (fault == CopyFault::kDrop) return;
    for (size_t i = 0; i < height; ++i) {
      std::memcpy(static_cast<char*>(to) + i * to_pitch,
                  static_cast<const char*>(from) + i * from_pitch, width);
    }
    if (fault == CopyFault::kAlter) *static_cast<char*>(to) ^= 1;
  });
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
  if (const cudaError_t error = begin("cudaMemsetAsync")) return error;
  Devices::get().require_on(queue_of(stream)->device, memory);
  put(stream, [=] { std::memset(memory, value, bytes); });
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  if (const cudaError_t error = begin("cudaEventCreateWithFlags")) return error;
  auto* made = new Event;
  made->device = current_device;
  *event = reinterpret_cast<cudaEvent_t>(made);
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const cudaError_t error = begin("cudaEventDestroy");
  delete event_of(event);
  return error;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (const cudaError_t error = begin("cudaEventRecord")) return error;
  require_current(queue_of(stream)->device);
  require_current(event_of(event)->device);
  const auto done = std::make_shared<bool>(false);
  event_of(event)->done = done;
  event_of(event)->queue = queue_of(stream);
  Devices::get().put(queue_of(stream), {[done] { *done = true; }, true});
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (const cudaError_t error = begin("cudaEventSynchronize")) return error;
  Devices::get().reach(*event_of(event));
  return after_work();
}
// Of the event as it is now, whenever it is recorded again.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (const cudaError_t error = begin("cudaStreamWaitEvent")) return error;
  put(stream, [event = *event_of(event)] { Devices::get().reach(event); });
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) {
  if (const cudaError_t error = begin("cudaEventElapsedTime")) return error;
  *milliseconds = 1;
  return cudaSuccess;
}

}  // extern "C"
