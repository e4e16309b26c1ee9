// Makes packing tables and masks on the device. All columns go there, and all packs are made of
// them together.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "src/engine/engine_maker.h"
#include "src/engine/kernel_record.h"

namespace blindfuse {

// Does the same as EngineMaker::make_pack_maker, with this kernel and on this device, the current
// one. blocks and key_masks outlive it.
std::unique_ptr<PackMaker> make_device_pack_maker(std::string_view kernel, int device,
                                                  std::shared_ptr<KernelRecord> record,
                                                  std::span<const uint32_t> blocks,
                                                  std::span<const uint32_t> key_masks,
                                                  uint64_t row_count, uint64_t column_count);

}  // namespace blindfuse
