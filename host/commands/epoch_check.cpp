#include "host/commands/epoch_check.h"

#include <optional>

#include "host/engines/canary_response.h"
#include "src/arithmetic/second_level_spec.h"
#include "src/protocol/public_polynomials.h"
#include "src/system/random.h"

namespace blindfuse {

void check_epoch(LoadedDatabase& database, size_t batch_max, unsigned thread_count) {
  if (!database.canary) return;
  const Layout& layout = database.manifest.layout;
  std::optional<SecondLevelPolynomials> polynomials;
  SecondLevelSpec second;
  if (layout.second) {
    polynomials.emplace(layout, ring::PublicPolynomials(database.manifest.seed));
    second = polynomials->spec(layout);
  }
  complete_canary(*database.canary, layout, database.packing_tables, thread_count, fill_from_system,
                  polynomials ? &second : nullptr);
  database.engine->check_kernels(*database.canary, batch_max);
}

}  // namespace blindfuse
