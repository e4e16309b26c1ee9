// Responders compute responses from the products of a batch, on the device.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "cuda/pipelines/batch_sizes.h"
#include "cuda/scan/scanner.h"

namespace blindfuse {

// A batch whose products are there, or will be there in the stream's order.
struct ScannedBatch {
  uint32_t query_count;
  Scanner::Kernel kernel;    // the kernel that computes the products
  const uint32_t* products;  // those of query q from q * product_pitch on
  uint64_t product_pitch;
  const uint32_t* extras;  // the queries' extra words, extra_pitch apart
  uint64_t extra_pitch;
  uint32_t* responses;  // shape().response_words for each query
};

class Responder {
 public:
  virtual ~Responder() = default;

  // The largest batch that it takes.
  virtual const BatchShape& shape() const = 0;
  // Comes after the work that is in the stream. Batches of different lanes may be computed at the
  // same time.
  virtual void start(size_t lane, const ScannedBatch& batch, cudaStream_t stream) = 0;
};

// Rounds the products to this many bits, for responses of the hint mode.
std::unique_ptr<Responder> make_rounder(const BatchShape& shape, uint32_t bits);

}  // namespace blindfuse
