#include <thrust/functional.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/transform_reduce.h>

#include <algorithm>

#include "cuda/checks/checksum.h"
#include "cuda/checks/thrust_call.cuh"
#include "src/arithmetic/little_endian.h"

namespace blindfuse {
namespace {

struct Weighted {
  const uint64_t* words;

  __host__ __device__ uint64_t operator()(uint64_t i) const { return (2 * i + 1) * words[i]; }
};

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
  return call_thrust("a checksum", [&] {
    return thrust::transform_reduce(policy_of(stream), first, first + word_count, Weighted{words},
                                    uint64_t{0}, thrust::plus<uint64_t>());
  });
}

}  // namespace blindfuse
