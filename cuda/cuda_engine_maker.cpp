#include "cuda/cuda_engine_maker.h"

#include <algorithm>
#include <string>
#include <utility>

#include "cuda/cuda_engine.h"
#include "cuda/device/device_info.h"
#include "cuda/packing/packing_kernels.h"
#include "cuda/packing/second_level_kernels.h"
#include "cuda/packing/table_kernels.h"
#include "cuda/pipelines/pack_maker.h"
#include "cuda/scan/scan_kernels.h"
#include "cuda/scan/scanner.h"
#include "src/arithmetic/packing_table.h"

namespace blindfuse {
namespace {

class CudaEngineMaker final : public EngineMaker {
 public:
  CudaEngineMaker(std::vector<std::string> kernels, int device)
      : kernels_(std::move(kernels)), device_(use_cuda_device(device)) {
    for (const std::string& kernel : kernels_) scan_kernel_named(kernel);
  }

  std::unique_ptr<Engine> make_engine(uint64_t row_count, uint64_t column_count) const override {
    return make_serving_engine(row_count, column_count, {});
  }
  std::unique_ptr<Engine> make_serving_engine(uint64_t row_count, uint64_t column_count,
                                              const ServingNeeds& needs) const override {
    return make_cuda_engine(kernels_, device_, row_count, column_count, needs, calibrations_);
  }

  bool computes_on_device() const override { return true; }

  // Returns as many packs as have 4 GiB of columns, however many threads the caller has.
  size_t packs_at_once(uint64_t row_count, unsigned) const override {
    constexpr uint64_t kColumnBytesMax = uint64_t{4} << 30;
    const uint64_t pack_bytes = std::max<uint64_t>(1, kPackColumns * row_count);
    return std::clamp<uint64_t>(kColumnBytesMax / pack_bytes, 1, kPacksAtOnceMax);
  }

  std::unique_ptr<PackMaker> make_pack_maker(std::span<const uint32_t> blocks,
                                             std::span<const uint32_t> key_masks,
                                             uint64_t row_count,
                                             uint64_t column_count) const override {
    return make_device_pack_maker(kernels_, use_cuda_device(device_), blocks, key_masks, row_count,
                                  column_count);
  }

 private:
  const std::vector<std::string> kernels_;
  const int device_;
  const std::shared_ptr<Calibrations> calibrations_ = std::make_shared<Calibrations>();
};

}  // namespace

void load_cuda_kernels(int device, std::string_view part) {
  use_cuda_device(device);
  load_scan_kernels();
  if (part == "packing") {
    load_packing_kernels();
    load_second_level_kernels();
  }
  if (part == "tables") load_table_kernels();
}

std::vector<std::string_view> cuda_kernel_names() { return scan_kernel_names(); }

std::unique_ptr<EngineMaker> make_cuda_engine_maker(std::vector<std::string> kernels, int device) {
  return std::make_unique<CudaEngineMaker>(std::move(kernels), device);
}

}  // namespace blindfuse
