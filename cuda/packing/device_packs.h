// Packing tables and masks of a matrix's columns, made on the device for all packs at the same time
// and kept there until they are asked for.
#pragma once

#include <cstdint>
#include <span>

#include "cuda/device/memory.h"
#include "cuda/device/stream.h"
#include "cuda/packing/device_ntt.h"
#include "cuda/packing/hint_words.h"
#include "src/arithmetic/packing_table.h"

namespace blindfuse {

class DevicePacks {
 public:
  // Of all columns of the matrix, which is on the current device; done when it returns, and the
  // matrix is not needed any more. blocks and key_masks as EngineMaker::make_pack_maker has them.
  // Throws ResourceError, with the bytes needed and those free, when there is no room.
  DevicePacks(Scanner& scanner, const DeviceMatrix& matrix, std::span<const uint32_t> blocks,
              std::span<const uint32_t> key_masks);

  // The same from hint polynomials, as make_hint_words leaves them, on this device, the current
  // one.
  DevicePacks(int device, DeviceMemory<uint32_t> hints, std::span<const uint32_t> key_masks);

  // The table and the mask of a pack. One caller at a time.
  void read(uint32_t pack, MutablePackingTable table, ring::MutablePolynomial mask);

 private:
  void make_tables(const DeviceMemory<uint32_t>& squares, std::span<const uint32_t> key_masks);

  const int device_;
  const uint32_t pack_count_;
  const DeviceNtt ring_;
  DeviceMemory<uint32_t> tables_;
  DeviceMemory<uint32_t> masks_;
  Stream stream_;  // last: through before the memory goes
};

}  // namespace blindfuse
