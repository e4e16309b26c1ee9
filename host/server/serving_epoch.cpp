#include "host/server/serving_epoch.h"

#include <algorithm>

#include "host/server/problem.h"

namespace blindfuse {

std::shared_ptr<const ServingEpoch> ServedEpochs::current() const {
  const std::lock_guard lock(mutex_);
  return current_;
}

std::shared_ptr<const ServingEpoch> ServedEpochs::find(std::string_view id) const {
  std::shared_ptr<const ServingEpoch> epoch = current();
  const LoadedDatabase& database = epoch->database();
  if (id == database.epoch) return epoch;
  const bool retired = std::ranges::find(database.retired, id) != database.retired.end();
  throw Refusal(Problem{
      .kind = retired ? ProblemKind::kRetiredEpoch : ProblemKind::kUnknownEpoch,
      .detail = retired ? "this epoch has been replaced; fetch /v1/database again"
                        : "this database has no such epoch; fetch /v1/database",
      .epoch = database.epoch,
  });
}

}  // namespace blindfuse
