#include "cuda/pipelines/packed_answer_pipeline.h"

#include "cuda/packing/device_ntt.h"
#include "cuda/packing/device_tables.h"
#include "cuda/packing/packing_kernels.h"
#include "cuda/pipelines/answer_pipeline.h"
#include "cuda/scan/scan_kernels.h"
#include "src/base/errors.h"

namespace blindfuse {
namespace {

constexpr std::string_view kPackingKernel = "packing";

// Packs the products under the queries' keys, which are what they bring beside their words.
class Packer final : public Responder {
 public:
  Packer(std::span<const SharedPackingTable> tables, uint64_t bytes_beside, uint64_t column_count,
         uint32_t bits, size_t batch_max)
      : tables_(tables, bytes_beside),
        column_count_(static_cast<uint32_t>(column_count)),
        bits_(bits) {
    for (Lane& lane : lanes_) {
      lane.planes = DeviceMemory<uint8_t>(batch_max * kQueryPlaneBytes);
      lane.sums = DeviceMemory<uint32_t>(batch_max * tables.size() * kRingWords);
    }
    BLINDFUSE_CUDA(cudaDeviceSynchronize());  // all is cleared
  }

  std::string_view kernel() const override { return kPackingKernel; }
  uint64_t extra_words() const override { return ring::kKeyWords; }
  uint64_t response_words() const override {
    return uint64_t{tables_.pack_count()} * (kRingWords / 32) * bits_;
  }

  void start(size_t number, const ScannedBatch& batch, cudaStream_t stream) override {
    const Lane& lane = lanes_[number];
    const uint32_t packs = tables_.pack_count();
    if (packs == 0) return;
    start_cut_keys({batch.extras, batch.extra_pitch, lane.planes.data()}, batch.query_count,
                   stream);
    start_sum_points(
        {tables_.bytes(), lane.planes.data(), packs, batch.query_count, 0, 0, lane.sums.data()},
        kPointSets, stream);
    start_finish_packs({ring_.view(), lane.sums.data(), tables_.last_key_switch(), batch.extras,
                        batch.extra_pitch, batch.products, batch.product_pitch, column_count_,
                        packs, bits_, batch.responses, response_words()},
                       batch.query_count, stream);
  }

 private:
  struct Lane {
    DeviceMemory<uint8_t> planes;
    DeviceMemory<uint32_t> sums;
  };

  const DeviceTables tables_;
  const DeviceNtt ring_;
  const uint32_t column_count_;
  const uint32_t bits_;
  Lane lanes_[kLanes];
};

// What the batches of both lanes take: words and keys, limbs, products, planes, sums, responses;
// what the scan does, and some for what CUDA itself needs.
uint64_t batch_bytes(const Scanner& scanner, const DeviceMatrix& matrix, size_t pack_count,
                     size_t batch_max) {
  const uint64_t each = 4 * matrix.row_count() + ring::kKeyBytes + 4 * matrix.column_count() +
                        kQueryPlaneBytes + 2 * 4 * kRingWords * pack_count;
  const uint64_t limbs = limb_rows_for(static_cast<uint32_t>(batch_max)) * matrix.pitch();
  return kLanes * (batch_max * each + limbs) + scanner.bytes_for(batch_max) + (uint64_t{64} << 20);
}

}  // namespace

std::unique_ptr<AnswerPipeline> make_device_packed_answer_pipeline(
    Scanner& scanner, const DeviceMatrix& matrix, WireBits bits,
    std::span<const SharedPackingTable> tables, size_t slot_count, size_t batch_max) {
  const uint64_t columns = matrix.column_count();
  invariant(tables.size() == (columns + kRingWords - 1) / kRingWords,
            "a packing table for every pack");
  if (const auto why = scanner.record().why_unfit(kPackingKernel)) {
    throw DeviceLostError("the packing kernels of the GPU are in quarantine: " + *why +
                          "; --engine cpu packs on the processor");
  }
  auto packer =
      std::make_unique<Packer>(tables, batch_bytes(scanner, matrix, tables.size(), batch_max),
                               columns, bits.response, batch_max);
  return make_device_answer_pipeline(scanner, matrix, bits, slot_count, batch_max,
                                     std::move(packer));
}

}  // namespace blindfuse
