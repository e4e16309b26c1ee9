// What the kernels use of CUB, for the emulator.
#pragma once

namespace cub {

template <typename T, int kThreads>
class BlockReduce {
 public:
  struct TempStorage {
    T sum;
  };

  explicit BlockReduce(TempStorage& storage) : storage_(storage) {}

  // As CUB's, right in the first thread.
  T Sum(T value) {
    __syncthreads();
    if (threadIdx.x == 0) storage_.sum = 0;
    __syncthreads();
    storage_.sum += value;
    __syncthreads();
    return storage_.sum;
  }

 private:
  TempStorage& storage_;
};

}  // namespace cub
