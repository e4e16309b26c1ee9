// The probes. Each measures the device's limit for one of the operations that kernels use.
#pragma once

#include <span>
#include <string_view>

#include "bench/probes/probe.h"

namespace blindfuse::probes {

struct ProbeKind {
  std::string_view name;
  std::string_view what;  // for people
  void (*run)(Probe& probe);
};

// In the order in which they run.
std::span<const ProbeKind> probe_kinds();

// Each checks its results, and says in its lines whether they are right. Throw CUDA's errors.

// Bandwidth of reads against bytes in flight, of memory whose columns lie `pitch` bytes apart: by
// loads, and by the tensor memory accelerator.
void probe_loads(Probe& probe, uint64_t pitch);
void probe_tensor_copies(Probe& probe, uint64_t pitch);
// Reads by all blocks of the same bytes, as many as limbs have.
void probe_limb_reads(Probe& probe);
// Products of operands in shared memory, with 16 to 256 columns; then for options().seconds with
// 256, in parts, so that clocks under power are seen.
void probe_products(Probe& probe);
// Additions to products.
void probe_reductions(Probe& probe);

}  // namespace blindfuse::probes
