// Packing tables and masks of a matrix's columns. The device makes those of all packs at the same
// time, and keeps them until they are asked for.
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
  // Made of all columns of the matrix, which is on the current device. Done when the constructor
  // returns; the matrix is not needed any more. key_masks as for EngineMaker::make_pack_maker.
  // Throws ResourceError, which names the bytes needed and the bytes free, if memory is too small.
  DevicePacks(Scanner& scanner, const DeviceMatrix& matrix, const PublicBlocks& blocks,
              std::span<const uint32_t> key_masks);

  // The same from the hint polynomials of make_hint_words, on this device, the current one.
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
