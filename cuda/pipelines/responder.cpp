#include "cuda/pipelines/responder.h"

#include "cuda/scan/scan_kernels.h"

namespace blindfuse {
namespace {

class Rounder final : public Responder {
 public:
  Rounder(const BatchShape& shape, uint32_t bits) : shape_(shape), bits_(bits) {}

  const BatchShape& shape() const override { return shape_; }

  void start(size_t, const ScannedBatch& batch, cudaStream_t stream) override {
    start_round({batch.products, batch.product_pitch, static_cast<uint32_t>(shape_.column_count),
                 bits_, batch.responses, shape_.response_words},
                batch.query_count, stream);
  }

 private:
  const BatchShape shape_;
  const uint32_t bits_;
};

}  // namespace

std::unique_ptr<Responder> make_rounder(const BatchShape& shape, uint32_t bits) {
  return std::make_unique<Rounder>(shape, bits);
}

}  // namespace blindfuse
