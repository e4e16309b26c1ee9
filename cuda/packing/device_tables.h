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
  // On the current device. Returns after all tables have arrived. Throws ResourceError, with the
  // bytes needed and those free, before anything is allocated if `bytes_beside` more would not fit
  // with them. Also throws ResourceError if the bytes that arrived differ from those that were
  // sent.
  DeviceTables(std::span<const SharedPackingTable> tables, uint64_t bytes_beside);

  // Its bytes of the device's memory while tables arrive. Afterwards it has a little less.
  static uint64_t bytes_for(size_t pack_count);

  uint32_t pack_count() const { return pack_count_; }
  // In the order of cuda/packing/kernels/packing_args.h.
  const int8_t* columns() const { return columns_.data(); }

 private:
  class Upload;

  uint32_t pack_count_;
  DeviceMemory<int8_t> columns_;
};

}  // namespace blindfuse
