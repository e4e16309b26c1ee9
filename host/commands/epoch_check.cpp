#include "host/commands/epoch_check.h"

#include <exception>

#include "host/engines/canary_response.h"
#include "host/server/ready_file.h"
#include "src/program/log.h"
#include "src/system/random.h"
#include "src/system/threads.h"

namespace blindfuse {

void check_epoch(LoadedDatabase& database, const EpochCheckOptions& options) {
  if (!database.canary) return;
  complete_canary(*database.canary, database.manifest.layout, database.packing_tables,
                  options.thread_count, fill_from_system);
  std::exception_ptr error;
  const WaitableThread check([&] {
    try {
      database.engine->check_kernels(*database.canary, options.batch_max);
    } catch (...) {
      error = std::current_exception();
    }
  });
  // A device that hangs cannot be waited for.
  if (!check.ends_within(options.limit)) {
    log_error(
        "the GPU did not multiply the matrix in {} s: the device hangs, and the program ends; "
        "nvidia-smi and the kernel's log (journalctl -k, \"Xid\") may say more",
        std::chrono::duration_cast<std::chrono::seconds>(options.limit).count());
    ReadyFile::end_process(options.ready_file);
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace blindfuse
