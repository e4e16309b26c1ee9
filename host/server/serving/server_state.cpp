#include "host/server/serving/server_state.h"

namespace blindfuse {

ServerState state_of(const ServedEpochs& epochs) {
  ServerState state;
  for (const EpochInMemory& held : epochs.in_memory()) {
    const auto& epoch = held.epoch;
    ++state.epochs;
    state.hint_bytes += held.downloads->hint_bytes();
    if (!epoch) continue;
    state.queue_length += epoch->scheduler().waiting_count();
    state.matrix_bytes += epoch->layout().matrix_bytes();
    state.packing_table_bytes += epoch->layout().packing_table_bytes();
  }
  const auto current = epochs.current();
  state.keys = current->layout().key_count;
  state.published_at = current->database().published_at;
  state.epoch = current->database().epoch;
  state.engine = current->engine().name();
  return state;
}

}  // namespace blindfuse
