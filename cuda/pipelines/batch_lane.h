// The device memory of one batch of an answer pipeline, and its responses in the host's memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/device/memory.h"
#include "cuda/device/stream.h"
#include "cuda/pipelines/batch_sizes.h"

namespace blindfuse {

struct BatchLane {
  // Takes memory for responses of this many bytes. The memory may be used after the device is
  // synchronized. Throws ResourceError if memory does not suffice.
  void allocate(const BatchSizes& sizes, size_t batch_max, uint64_t response_bytes);

  // Copies responses from the device to `finished`, after the work in the stream. pitch: words of
  // 32 bits from one to the next.
  void finish(const uint32_t* from, uint64_t pitch, uint64_t response_bytes, uint32_t count) const;

  DeviceMemory<uint32_t> queries;  // as they are in slots
  DeviceMemory<int8_t> limbs;
  DeviceMemory<uint32_t> sums_and_products;  // which are cleared together
  uint32_t* sums = nullptr;                  // of each query's words, weighted
  uint32_t* products = nullptr;
  DeviceMemory<uint32_t> responses;
  PinnedMemory<uint8_t> finished;
  PinnedMemory<uint32_t> differences;  // of each query's products, weighted, from its sum
  Event done;
  Stream stream;
};

}  // namespace blindfuse
