#include "cuda/pipelines/packed_answer_pipeline.h"

#include <utility>

#include "cuda/packing/device_ntt.h"
#include "cuda/packing/device_second_level.h"
#include "cuda/packing/device_tables.h"
#include "cuda/packing/packing_kernels.h"
#include "cuda/packing/second_level_kernels.h"
#include "cuda/pipelines/answer_pipeline.h"
#include "cuda/pipelines/responder.h"
#include "cuda/scan/kernel_kinds.h"
#include "cuda/scan/scan_kernels.h"
#include "src/base/errors.h"

namespace blindfuse {
namespace {

// Packs the products under the queries' keys, of which each brings one in addition to its words.
class Packer final : public Responder {
 public:
  Packer(std::span<const SharedPackingTable> tables, uint64_t bytes_beside, const BatchShape& shape,
         uint32_t bits, size_t batch_max)
      : tables_(tables, bytes_beside),
        shape_(shape),
        bits_(bits),
        half_limb_bytes_(half_limb_bytes(batch_max)) {
    for (Lane& lane : lanes_) {
      lane.limbs = DeviceMemory<int8_t>(kRingHalves * half_limb_bytes_);
      lane.sums = DeviceMemory<uint64_t>(sum_count(tables.size(), batch_max));
    }
    BLINDFUSE_CUDA(cudaDeviceSynchronize());  // all is cleared
  }

  // The memory of the responder on the device, without the tables.
  static uint64_t device_bytes(size_t pack_count, size_t batch_max) {
    return DeviceNtt::kBytes + kLanes * (kRingHalves * half_limb_bytes(batch_max) +
                                         sizeof(uint64_t) * sum_count(pack_count, batch_max));
  }

  const BatchShape& shape() const override { return shape_; }

  void start(size_t number, const ScannedBatch& batch, cudaStream_t stream) override {
    const Lane& lane = lanes_[number];
    const uint32_t packs = tables_.pack_count();
    if (packs == 0) return;
    const ScanKernel kernel = sum_kernel_for(batch.kernel);
    const Limbs limbs{lane.limbs.data(), kSumRows, limb_order_of(kernel)};
    start_cut_keys({batch.extras, batch.extra_pitch, limbs, half_limb_bytes_}, batch.query_count,
                   stream);
    BLINDFUSE_CUDA(cudaMemsetAsync(lane.sums.data(), 0,
                                   sizeof(uint64_t) * sum_count(packs, batch.query_count), stream));
    const PackSumsArgs sums{tables_.columns(), packs,           limbs, half_limb_bytes_,
                            batch.query_count, lane.sums.data()};
    for (uint32_t half = 0; half < kRingHalves; ++half) {
      start_sums(kernel, half_sums(sums, half), stream);
    }
    start_finish_packs({ring_.view(), lane.sums.data(), batch.products, batch.product_pitch,
                        static_cast<uint32_t>(shape_.column_count), packs, bits_, batch.responses,
                        shape_.response_words},
                       batch.query_count, stream);
  }

 private:
  static uint64_t half_limb_bytes(size_t batch_max) {
    return limb_rows_for(static_cast<uint32_t>(batch_max)) * kSumRows;
  }
  static uint64_t sum_count(size_t pack_count, size_t queries) {
    return queries * pack_count * kRingWords;
  }

  struct Lane {
    DeviceMemory<int8_t> limbs;  // of the keys, half after half
    DeviceMemory<uint64_t> sums;
  };

  const DeviceTables tables_;
  const DeviceNtt ring_;
  const BatchShape shape_;
  const uint32_t bits_;
  const uint64_t half_limb_bytes_;
  Lane lanes_[kLanes];
};

}  // namespace

uint64_t packed_pipeline_bytes(const BatchShape& shape, size_t pack_count, size_t batch_max,
                               const SecondLevelSpec* second) {
  const uint64_t second_bytes =
      second == nullptr ? 0 : DeviceSecondLevel::bytes_of(*second, kLanes, batch_max);
  return DeviceTables::bytes_for(pack_count) + Packer::device_bytes(pack_count, batch_max) +
         BatchSizes(shape, batch_max).device_bytes() + second_bytes;
}

std::unique_ptr<AnswerPipeline> make_device_packed_answer_pipeline(
    Scanner& scanner, const DeviceMatrix& matrix, WireBits bits,
    std::span<const SharedPackingTable> tables, size_t slot_count, size_t batch_max,
    const SecondLevelSpec* second, size_t bucket_count) {
  const uint64_t columns = matrix.column_count();
  invariant(tables.size() == (columns + kPackColumns - 1) / kPackColumns,
            "a packing table for every pack");
  invariant(second == nullptr || second->word_bits == bits.response,
            "a second level of the first one's words");
  invariant(second == nullptr || bucket_count == 1, "buckets have one level");
  load_packing_kernels();
  if (second != nullptr) load_second_level_kernels();
  const BatchShape shape = packed_shape(matrix.row_count(), columns, tables.size(), bits.query,
                                        bits.response, second, bucket_count);
  const uint64_t bytes_beside = packed_pipeline_bytes(shape, tables.size(), batch_max, second) -
                                DeviceTables::bytes_for(tables.size());
  auto packer = std::make_unique<Packer>(tables, bytes_beside, shape, bits.response, batch_max);
  return make_device_answer_pipeline(
      scanner, matrix, bits, slot_count, batch_max, std::move(packer),
      second == nullptr ? nullptr
                        : std::make_unique<DeviceSecondLevel>(*second, kLanes, batch_max));
}

}  // namespace blindfuse
