#include "cuda/checks/product_check.h"

#include <thrust/iterator/counting_iterator.h>
#include <thrust/tabulate.h>
#include <thrust/transform_reduce.h>

#include "cuda/checks/thrust_call.cuh"

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

// The number of words that differ from what they should be, and the first that does.
struct Differing {
  uint64_t count;
  uint64_t first;
};
constexpr uint64_t kNone = ~uint64_t{0};

struct DifferingAt {
  const uint32_t* products;
  OddMultiple expected;

  __host__ __device__ Differing operator()(uint64_t i) const {
    if (products[i] == expected(i)) return {0, kNone};
    return {1, i};
  }
};

struct Together {
  __host__ __device__ Differing operator()(const Differing& a, const Differing& b) const {
    return {a.count + b.count, a.first < b.first ? a.first : b.first};
  }
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
  const thrust::counting_iterator<uint64_t> numbers(0);
  const Differing differing = call_thrust("a comparison", [&] {
    return thrust::transform_reduce(policy_of(stream), numbers, numbers + count,
                                    DifferingAt{products, {product, column_count, 0}},
                                    Differing{0, kNone}, Together{});
  });
  if (differing.count == 0) return {};
  return {differing.count, static_cast<uint32_t>(differing.first / column_count),
          differing.first % column_count};
}

void start_noise(uint64_t* words, uint64_t word_count, cudaStream_t stream) {
  call_thrust("random words",
              [&] { thrust::tabulate(policy_of(stream), words, words + word_count, Noise{}); });
}

}  // namespace blindfuse
