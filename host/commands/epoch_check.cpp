#include "host/commands/epoch_check.h"

#include "host/engines/canary_response.h"
#include "src/system/random.h"

namespace blindfuse {

void check_epoch(LoadedDatabase& database, size_t batch_max, unsigned thread_count) {
  if (!database.canary) return;
  const ring::PublicPolynomials polynomials(database.manifest.seed);
  complete_canary(*database.canary, database.manifest.layout, database.packing_tables, thread_count,
                  fill_from_system, &polynomials);
  database.engine->check_kernels(*database.canary, batch_max);
}

}  // namespace blindfuse
