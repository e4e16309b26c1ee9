#include "cuda/scan/product_check.h"

#include <thrust/count.h>
#include <thrust/functional.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/mismatch.h>
#include <thrust/tabulate.h>

#include "cuda/scan/thrust_call.cuh"

namespace blindfuse {
namespace {

// The i-th word of odd multiples of `size` words, the first of them the one of query `first`.
struct OddMultiple {
  const uint32_t* words;
  uint64_t size;
  uint32_t first;

  __host__ __device__ uint32_t operator()(uint64_t i) const {
    const auto query = first + static_cast<uint32_t>(i / size);
    return (2 * query + 1) * words[i % size];
  }
};

struct Differs {
  const uint32_t* products;
  OddMultiple expected;

  __host__ __device__ bool operator()(uint64_t i) const { return products[i] != expected(i); }
};

// SplitMix64's finalizer (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
// figure 16).
struct Noise {
  __host__ __device__ uint64_t operator()(uint64_t i) const {
    uint64_t z = (i + 1) * 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
};

}  // namespace

void start_odd_multiples(const uint32_t* query, uint64_t row_count, uint32_t first, uint32_t count,
                         uint32_t* words, cudaStream_t stream) {
  call_thrust("multiples of a query", [&] {
    thrust::tabulate(policy_of(stream), words, words + count * row_count,
                     OddMultiple{query, row_count, first});
  });
}

ProductDifference compare_products(const uint32_t* products, const uint32_t* product,
                                   uint64_t column_count, uint32_t query_count,
                                   cudaStream_t stream) {
  const uint64_t count = query_count * column_count;
  const OddMultiple expected{product, column_count, 0};
  const thrust::counting_iterator<uint64_t> numbers(0);
  return call_thrust("a comparison", [&]() -> ProductDifference {
    const auto policy = policy_of(stream);
    const auto [found, other] =
        thrust::mismatch(policy, products, products + count,
                         thrust::make_transform_iterator(numbers, expected));
    (void)other;
    const auto first = static_cast<uint64_t>(found - products);
    if (first == count) return {};
    const auto differing =
        thrust::count_if(policy, numbers + first, numbers + count, Differs{products, expected});
    return {static_cast<uint64_t>(differing), static_cast<uint32_t>(first / column_count),
            first % column_count};
  });
}

void start_noise(uint64_t* words, uint64_t word_count, cudaStream_t stream) {
  call_thrust("random words",
              [&] { thrust::tabulate(policy_of(stream), words, words + word_count, Noise{}); });
}

}  // namespace blindfuse
