// Makes packing tables and masks on the device. All columns go there, and all packs are made of
// them together.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "src/engine/engine_maker.h"

namespace blindfuse {

// Does the same as EngineMaker::make_pack_maker, with these kernels (Scanner) and on this device,
// the current one. blocks and key_masks outlive it.
std::unique_ptr<PackMaker> make_device_pack_maker(const std::vector<std::string>& kernels,
                                                  int device, std::span<const uint32_t> blocks,
                                                  std::span<const uint32_t> key_masks,
                                                  uint64_t row_count, uint64_t column_count);

}  // namespace blindfuse
