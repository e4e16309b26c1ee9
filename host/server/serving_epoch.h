// One epoch as it is served: its data, the engine that holds its matrix, and the queue in front of
// that engine.
#pragma once

#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include "host/database/loaded_database.h"
#include "host/server/batch_scheduler.h"
#include "src/engine.h"

namespace blindfuse {

class ServingEpoch {
 public:
  ServingEpoch(LoadedDatabase database, const BatchLimits& limits,
               BatchScheduler::FailureCallback on_failure = {})
      : database_(std::move(database)),
        scheduler_(std::make_unique<BatchScheduler>(*database_.engine, layout(), limits,
                                                    std::move(on_failure))) {}

  const LoadedDatabase& database() const { return database_; }
  const Layout& layout() const { return database_.manifest.layout; }
  const Engine& engine() const { return *database_.engine; }

  // Any number of threads may ask it, also those that see the epoch as const.
  BatchScheduler& scheduler() const { return *scheduler_; }

 private:
  const LoadedDatabase database_;
  const std::unique_ptr<BatchScheduler>
      scheduler_;  // last, so that its worker ends before its engine does
};

// Which epoch clients get. A request holds on to the one it started with until it is answered.
class ServedEpochs {
 public:
  explicit ServedEpochs(std::shared_ptr<const ServingEpoch> current)
      : current_(std::move(current)) {}

  std::shared_ptr<const ServingEpoch> current() const;

  // The epoch of this id. Throws Refusal with the current id: 410 for a retired epoch, 404 for any
  // other id.
  std::shared_ptr<const ServingEpoch> find(std::string_view id) const;

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const ServingEpoch> current_;
};

}  // namespace blindfuse
