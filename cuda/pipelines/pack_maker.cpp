#include "cuda/pipelines/pack_maker.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <vector>

#include "cuda/packing/device_packs.h"
#include "cuda/scan/device_matrix.h"
#include "cuda/scan/scanner.h"

namespace blindfuse {
namespace {

class DevicePackMaker final : public PackMaker {
 public:
  DevicePackMaker(const std::vector<std::string>& kernels, int device,
                  std::span<const uint32_t> blocks, std::span<const uint32_t> key_masks,
                  uint64_t row_count, uint64_t column_count)
      : blocks_(blocks),
        key_masks_(key_masks),
        buckets_(column_count),
        matrix_(device, row_count, column_count, 0),
        scanner_(matrix_, kernels) {}

  void set_columns(uint64_t first, std::span<const uint8_t> bytes, size_t bucket) override {
    if (bytes.empty()) return;
    matrix_.set_columns(first, bytes);
    std::fill_n(buckets_.begin() + static_cast<ptrdiff_t>(first),
                bytes.size() / matrix_.row_count(), static_cast<uint32_t>(bucket));
  }

  void seal() override {
    matrix_.check();
    matrix_.use_device();
    packs_.emplace(scanner_, matrix_, PublicBlocks{blocks_, buckets_}, key_masks_);
  }

  void make(uint32_t pack, MutablePackingTable table, ring::MutablePolynomial mask) override {
    const std::lock_guard lock(mutex_);
    packs_->read(pack, table, mask);
  }

 private:
  const std::span<const uint32_t> blocks_;
  const std::span<const uint32_t> key_masks_;
  std::vector<uint32_t> buckets_;  // of each column
  DeviceMatrix matrix_;
  Scanner scanner_;
  std::mutex mutex_;
  std::optional<DevicePacks> packs_;
};

}  // namespace

std::unique_ptr<PackMaker> make_device_pack_maker(const std::vector<std::string>& kernels,
                                                  int device, std::span<const uint32_t> blocks,
                                                  std::span<const uint32_t> key_masks,
                                                  uint64_t row_count, uint64_t column_count) {
  return std::make_unique<DevicePackMaker>(kernels, device, blocks, key_masks, row_count,
                                           column_count);
}

}  // namespace blindfuse
