// Sums the products of one panel after another on the device, for the hint. Words go to the device
// from two buffers in turn, and the sums stay there until the end.
#pragma once

#include <memory>

#include "cuda/scan/scanner.h"
#include "src/engine/engine.h"

namespace blindfuse {

// Scanner and matrix outlive it. Throws ResourceError, with the bytes needed and those free, when
// there is no room.
std::unique_ptr<PanelProducts> make_device_panel_products(Scanner& scanner,
                                                          const DeviceMatrix& matrix, size_t count,
                                                          uint64_t rows_max);

}  // namespace blindfuse
