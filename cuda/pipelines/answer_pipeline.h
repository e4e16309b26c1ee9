// Computes responses from queries, both bit sequences, on the device. Two batches take turns: one
// is copied to the device while the other is computed.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <string_view>

#include "cuda/packing/device_second_level.h"
#include "cuda/pipelines/batch_sizes.h"
#include "cuda/scan/scanner.h"
#include "src/engine/engine.h"

namespace blindfuse {

// A batch whose products are there, or will be there in the stream's order.
struct ScannedBatch {
  uint32_t query_count;
  Scanner::Kernel kernel;    // that computes the products
  const uint32_t* products;  // those of query q from q * product_pitch on
  uint64_t product_pitch;
  const uint32_t* extras;  // what its queries brought in addition to their words, extra_pitch words
                           // apart
  uint64_t extra_pitch;
  uint32_t* responses;  // shape().response_words for each query
};

// Computes packed responses from products.
class Responder {
 public:
  virtual ~Responder() = default;

  // Its name in the record of kernels: "packing".
  virtual std::string_view kernel() const = 0;
  // The largest batch that it takes.
  virtual const BatchShape& shape() const = 0;
  // Comes after the work that is in the stream. Batches of different lanes may be computed at the
  // same time.
  virtual void start(size_t lane, const ScannedBatch& batch, cudaStream_t stream) = 0;
};

// Scanner and matrix outlive it. Throws ResourceError if there is no room for this many queries.
std::unique_ptr<AnswerPipeline> make_device_answer_pipeline(Scanner& scanner,
                                                            const DeviceMatrix& matrix,
                                                            WireBits bits, size_t slot_count,
                                                            size_t batch_max);

// The same with a given responder. The pipeline gives it batches of up to batch_max. With a second
// level, which may be null, the responder's responses stay on the device, and those of the second
// level are the pipeline's.
std::unique_ptr<AnswerPipeline> make_device_answer_pipeline(
    Scanner& scanner, const DeviceMatrix& matrix, WireBits bits, size_t slot_count,
    size_t batch_max, std::unique_ptr<Responder> responder,
    std::unique_ptr<DeviceSecondLevel> second = nullptr);

}  // namespace blindfuse
