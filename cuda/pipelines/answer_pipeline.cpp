#include "cuda/pipelines/answer_pipeline.h"

#include <algorithm>
#include <deque>
#include <string>
#include <utility>

#include "cuda/device/launch_trail.h"
#include "cuda/device/memory.h"
#include "cuda/device/stream.h"
#include "cuda/scan/scan_kernels.h"
#include "src/arithmetic/bit_sequence.h"
#include "src/base/errors.h"

namespace blindfuse {
namespace {

// Rounds the products.
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

class DeviceAnswerPipeline final : public AnswerPipeline {
 public:
  DeviceAnswerPipeline(Scanner& scanner, const DeviceMatrix& matrix, WireBits bits,
                       size_t slot_count, size_t batch_max, std::unique_ptr<Responder> responder)
      : scanner_(scanner),
        matrix_(matrix),
        bits_(bits),
        rows_(matrix.row_count()),
        columns_(matrix.column_count()),
        responder_(std::move(responder)),
        sizes_(responder_->shape(), batch_max),
        response_bytes_(bit_sequence_bytes(columns_, bits.response)),
        slots_(slot_count * sizes_.slot_words) {
    std::ranges::fill(slots_.span(), 0u);
    for (Lane& lane : lanes_) {
      lane.queries = DeviceMemory<uint32_t>(sizes_.queries);
      lane.limbs = DeviceMemory<int8_t>(sizes_.limbs);
      lane.products = DeviceMemory<uint32_t>(sizes_.products);
      lane.responses = DeviceMemory<uint32_t>(sizes_.responses);
      lane.finished = PinnedMemory<uint8_t>(batch_max * response_bytes_);
    }
    limb_pitch_ = matrix.pitch();
    BLINDFUSE_CUDA(cudaDeviceSynchronize());  // all is cleared
  }

  size_t depth() const override { return kLanes; }

  void put(size_t slot, std::span<const uint8_t> query) override {
    uint32_t* const words = slots_.data() + slot * sizes_.slot_words;
    std::ranges::copy(query.first(sizes_.query_bytes), reinterpret_cast<uint8_t*>(words));
    std::ranges::copy(query.subspan(sizes_.query_bytes),
                      reinterpret_cast<uint8_t*>(words + sizes_.extras_at));
  }

  void move(size_t from, size_t to) override {
    const uint64_t words = sizes_.slot_words;
    std::copy_n(slots_.data() + from * words, words, slots_.data() + to * words);
  }

  void begin(size_t first, size_t count) override {
    matrix_.use_device();
    Lane& lane = lanes_[next_];
    const cudaStream_t stream = lane.stream.get();
    const auto queries = static_cast<uint32_t>(count);
    launch_trail::note(stream, "a batch of " + std::to_string(count) + " queries of " +
                                   std::to_string(rows_) + " rows and " + std::to_string(columns_) +
                                   " columns");
    const uint64_t slot_words = sizes_.slot_words;
    BLINDFUSE_CUDA(cudaMemcpyAsync(lane.queries.data(), slots_.data() + first * slot_words,
                                   count * slot_words * sizeof(uint32_t), cudaMemcpyHostToDevice,
                                   stream));
    const Scanner::Choice choice = scanner_.choose(queries);
    const Limbs limbs{lane.limbs.data(), limb_pitch_, choice.order};
    start_cut(BitSequences{lane.queries.data(), slot_words, bits_.query, rows_}, queries, limbs,
              stream);
    BLINDFUSE_CUDA(
        cudaMemsetAsync(lane.products.data(), 0, count * columns_ * sizeof(uint32_t), stream));
    scanner_.start(choice, limbs, queries, {0, rows_}, lane.products.data(), stream);
    responder_->start(next_,
                      {queries, lane.products.data(), columns_,
                       lane.queries.data() + sizes_.extras_at, slot_words, lane.responses.data()},
                      stream);
    BLINDFUSE_CUDA(cudaMemcpy2DAsync(lane.finished.data(), response_bytes_, lane.responses.data(),
                                     responder_->shape().response_words * sizeof(uint32_t),
                                     response_bytes_, count, cudaMemcpyDeviceToHost, stream));
    lane.done.record(lane.stream);
    begun_.push_back({next_, count});
    next_ = (next_ + 1) % kLanes;
  }

  std::span<const uint8_t> finish() override {
    const Begun oldest = begun_.front();
    begun_.pop_front();
    matrix_.use_device();
    const Lane& lane = lanes_[oldest.lane];
    lane.done.wait();
    return {lane.finished.data(), oldest.count * response_bytes_};
  }

 private:
  struct Lane {
    DeviceMemory<uint32_t> queries;  // as they are in slots
    DeviceMemory<int8_t> limbs;
    DeviceMemory<uint32_t> products;
    DeviceMemory<uint32_t> responses;
    PinnedMemory<uint8_t> finished;
    Event done;
    Stream stream;
  };
  struct Begun {
    size_t lane;
    size_t count;
  };

  Scanner& scanner_;
  const DeviceMatrix& matrix_;
  const WireBits bits_;
  const uint64_t rows_;
  const uint64_t columns_;
  const std::unique_ptr<Responder> responder_;
  const BatchSizes sizes_;
  const uint64_t response_bytes_;
  uint64_t limb_pitch_ = 0;
  PinnedMemory<uint32_t> slots_;
  Lane lanes_[kLanes];  // behind all that their streams use
  size_t next_ = 0;
  std::deque<Begun> begun_;
};

}  // namespace

std::unique_ptr<AnswerPipeline> make_device_answer_pipeline(Scanner& scanner,
                                                            const DeviceMatrix& matrix,
                                                            WireBits bits, size_t slot_count,
                                                            size_t batch_max) {
  const BatchShape shape =
      hint_shape(matrix.row_count(), matrix.column_count(), bits.query, bits.response);
  const uint64_t bytes = BatchSizes(shape, batch_max).device_bytes() + scanner.bytes_for(batch_max);
  const std::string what = "two batches of up to " + std::to_string(batch_max) + " queries";
  require_room(bytes, what.c_str(), "lower --batch-max, or serve with --engine cpu");
  return make_device_answer_pipeline(scanner, matrix, bits, slot_count, batch_max,
                                     std::make_unique<Rounder>(shape, bits.response));
}

std::unique_ptr<AnswerPipeline> make_device_answer_pipeline(Scanner& scanner,
                                                            const DeviceMatrix& matrix,
                                                            WireBits bits, size_t slot_count,
                                                            size_t batch_max,
                                                            std::unique_ptr<Responder> responder) {
  try {
    return std::make_unique<DeviceAnswerPipeline>(scanner, matrix, bits, slot_count, batch_max,
                                                  std::move(responder));
  } catch (const DeviceLostError&) {
    throw;
  } catch (const ResourceError& error) {
    throw ResourceError("no room for " + std::to_string(slot_count) +
                        " waiting queries in the host's memory and " +
                        std::to_string(kLanes * batch_max) +
                        " in the device's; lower --queue-max or --batch-max: " + error.what());
  }
}

}  // namespace blindfuse
