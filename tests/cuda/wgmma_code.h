// Which code the emulator stands for: that of compute capability 9.0a, or other code, which has no
// wgmma.
#pragma once

namespace blindfuse::emulator {

// What runs_wgmma_code() says in kernels from now on; at first it says true.
void set_wgmma_code(bool runs);

}  // namespace blindfuse::emulator
