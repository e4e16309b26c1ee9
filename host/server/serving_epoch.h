// One epoch as it is served: its data, the engine that holds its matrix, and the queue in front of
// that engine.
#pragma once

#include <functional>
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
  using EngineMaker = std::function<std::unique_ptr<Engine>(const Matrix&)>;

  // make_engine gets the matrix of the database, which stays where it is as long as the epoch
  // lives.
  ServingEpoch(LoadedDatabase database, const EngineMaker& make_engine, const BatchLimits& limits)
      : database_(std::move(database)),
        engine_(make_engine(database_.matrix)),
        scheduler_(std::make_unique<BatchScheduler>(*engine_, layout(), limits)) {}

  const LoadedDatabase& database() const { return database_; }
  const Layout& layout() const { return database_.manifest.layout; }
  std::string_view engine_name() const { return engine_->name(); }

  // Any number of threads may ask it, also those that see the epoch as const.
  BatchScheduler& scheduler() const { return *scheduler_; }

 private:
  const LoadedDatabase database_;
  const std::unique_ptr<Engine> engine_;
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
