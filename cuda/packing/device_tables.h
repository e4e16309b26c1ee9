// The packing tables in the device's memory, as the kernels read them.
#pragma once

#include <cstdint>
#include <span>

#include "cuda/device/memory.h"
#include "cuda/packing/kernels/packing_args.h"
#include "src/arithmetic/packing_table.h"

namespace blindfuse {

class DeviceTables {
 public:
  // On the device that is current; returns when all is there. Takes as much memory as the tables,
  // their number rounded up to whole eights. Throws ResourceError, with the bytes needed and those
  // free, before anything is allocated, when `bytes_beside` more would not fit with them; and when
  // what has arrived is not what was sent.
  DeviceTables(std::span<const SharedPackingTable> tables, uint64_t bytes_beside);

  // What it takes of the device's memory while tables arrive, and a little less then.
  static uint64_t bytes_for(size_t pack_count);

  uint32_t pack_count() const { return pack_count_; }
  // In the orders of cuda/packing/kernels/packing_args.h.
  const uint8_t* bytes() const { return bytes_.data(); }
  const uint32_t* last_key_switch() const { return last_key_switch_.data(); }

 private:
  class Upload;

  uint32_t pack_count_;
  DeviceMemory<uint8_t> bytes_;
  DeviceMemory<uint32_t> last_key_switch_;
};

}  // namespace blindfuse
