// Makes packing tables and masks on the processor. Each column becomes its hint polynomial as soon
// as it is set.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "src/engine/engine_maker.h"

namespace blindfuse {

// Does the same as EngineMaker::make_pack_maker, on the calling threads. Takes 8.4 MB a pack, 42 MB
// more for each pack that is being made (25.1 MB of them are the caller's table), and 8 bytes a row
// of each bucket.
std::unique_ptr<PackMaker> make_cpu_pack_maker(std::span<const uint32_t> blocks,
                                               std::span<const uint32_t> key_masks,
                                               uint64_t row_count, uint64_t column_count);

}  // namespace blindfuse
