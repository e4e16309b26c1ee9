#include <thrust/execution_policy.h>
#include <thrust/functional.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/system_error.h>
#include <thrust/transform_reduce.h>

#include <algorithm>
#include <new>

#include "cuda/device/check.h"
#include "cuda/scan/checksum.h"
#include "src/arithmetic/little_endian.h"
#include "src/base/errors.h"

namespace blindfuse {
namespace {

struct Weighted {
  const uint64_t* words;

  __host__ __device__ uint64_t operator()(uint64_t i) const { return (2 * i + 1) * words[i]; }
};

// Where Thrust computes: on the device, or, in the tests without one, on the processor.
#if THRUST_DEVICE_SYSTEM == THRUST_DEVICE_SYSTEM_CUDA
auto policy_of(cudaStream_t stream) { return thrust::cuda::par.on(stream); }
#else
auto policy_of(cudaStream_t stream) {
  BLINDFUSE_CUDA(cudaStreamSynchronize(stream));
  return thrust::device;
}
#endif

}  // namespace

PartialChecksum::PartialChecksum(std::span<const uint8_t> bytes) {
  const uint64_t whole = bytes.size() / 8;
  const auto add = [this](uint64_t i, uint64_t word) {
    sum += word;
    weighted_sum += (2 * i + 1) * word;
  };
  for (uint64_t i = 0; i < whole; ++i) add(i, load_le<uint64_t>(bytes.data() + 8 * i));
  uint8_t last[8] = {};
  std::copy(bytes.begin() + static_cast<ptrdiff_t>(8 * whole), bytes.end(), last);
  add(whole, load_le<uint64_t>(last));
}

uint64_t device_checksum(const uint64_t* words, uint64_t word_count, cudaStream_t stream) {
  const thrust::counting_iterator<uint64_t> first(0);
  try {
    return thrust::transform_reduce(policy_of(stream), first, first + word_count, Weighted{words},
                                    uint64_t{0}, thrust::plus<uint64_t>());
  } catch (const thrust::system_error& error) {
    check_cuda(static_cast<cudaError_t>(error.code().value()), error.what(), __FILE__, __LINE__);
    throw;
  } catch (const std::bad_alloc& error) {
    throw ResourceError(std::string("no room for a checksum on the device: ") + error.what());
  }
}

}  // namespace blindfuse
