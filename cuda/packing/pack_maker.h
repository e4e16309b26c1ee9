// Packing tables and masks of a matrix's columns, made on the device for all packs at the same time
// and kept there until they are asked for.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "cuda/packing/hint_words.h"
#include "src/engine.h"

namespace blindfuse {

// As Engine::make_pack_maker, and done when it returns. The matrix is on the current device; what
// is returned does not need it any more.
std::unique_ptr<PackMaker> make_device_pack_maker(Scanner& scanner, const DeviceMatrix& matrix,
                                                  std::span<const uint32_t> blocks,
                                                  std::span<const uint32_t> key_masks);

// The same from hint polynomials, as make_hint_words leaves them, on this device, the current one.
std::unique_ptr<PackMaker> make_device_pack_maker(int device, DeviceMemory<uint32_t> hints,
                                                  std::span<const uint32_t> key_masks);

}  // namespace blindfuse
