#include "bench/probes/probes.h"

#include "bench/probes/tile_walk.h"

namespace blindfuse::probes {
namespace {

// Columns of 40,960, 131,072 and 1,179,648 rows; and one after another.
template <void (*kProbe)(Probe&, uint64_t), uint64_t kPitch>
void run_with_pitch(Probe& probe) {
  kProbe(probe, kPitch);
}

constexpr ProbeKind kKinds[] = {
    {"ldg-contiguous", "loads of what lies together", run_with_pitch<probe_loads, kPieceBytes>},
    {"ldg-41k", "loads of 128 x 128 bytes, 40,960 apart", run_with_pitch<probe_loads, 40'960>},
    {"ldg-131k", "loads of 128 x 128 bytes, 131,072 apart", run_with_pitch<probe_loads, 131'072>},
    {"ldg-1180k", "loads of 128 x 128 bytes, 1,179,648 apart",
     run_with_pitch<probe_loads, 1'179'648>},
    {"tma-contiguous", "copies by the tensor memory accelerator of what lies together",
     run_with_pitch<probe_tensor_copies, kPieceBytes>},
    {"tma-41k", "... of 128 x 128 bytes, 40,960 apart",
     run_with_pitch<probe_tensor_copies, 40'960>},
    {"tma-131k", "... of 128 x 128 bytes, 131,072 apart",
     run_with_pitch<probe_tensor_copies, 131'072>},
    {"tma-1180k", "... of 128 x 128 bytes, 1,179,648 apart",
     run_with_pitch<probe_tensor_copies, 1'179'648>},
    {"limbs", "the same bytes read by all blocks", probe_limb_reads},
    {"reductions", "additions to products by many blocks", probe_reductions},
    {"wgmma", "products of operands in shared memory", probe_products},
};

}  // namespace

std::span<const ProbeKind> probe_kinds() { return kKinds; }

}  // namespace blindfuse::probes
