#include "host/server/routes/epoch_lookup.h"

#include <utility>

#include "host/server/routes/problem.h"

namespace blindfuse {

std::shared_ptr<const ServingEpoch> find_epoch(const ServedEpochs& epochs, const EpochId& id) {
  ServedEpochs::Found found = epochs.find(id);
  if (found.epoch) return std::move(found.epoch);
  throw Refusal(Problem{
      .kind = found.is_retired ? ProblemKind::kRetiredEpoch : ProblemKind::kUnknownEpoch,
      .detail = found.is_retired ? "this epoch has been replaced; fetch /v1/database again"
                                 : "this database has no such epoch; fetch /v1/database",
      .epoch = found.current,
  });
}

}  // namespace blindfuse
