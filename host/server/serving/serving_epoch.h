// An epoch in service: its data, the engine that holds its matrix, and the queue in front of that
// engine. Also all the epochs that are served at the moment.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "host/database/loaded_database.h"
#include "host/server/serving/batch_scheduler.h"
#include "src/engine/engine.h"
#include "src/protocol/public_polynomials.h"

namespace blindfuse {

// The part of an epoch's id that logs have.
inline std::string short_epoch(const EpochId& id) { return id.substr(0, 16); }

class ServingEpoch {
 public:
  // The observer, if any, outlives this.
  ServingEpoch(LoadedDatabase database, const BatchLimits& limits,
               BatchObserver* observer = nullptr)
      : database_(std::move(database)),
        polynomials_(database_.manifest.seed),
        manifest_text_(std::make_shared<const std::string>(database_.downloads->manifest_text)),
        scheduler_(std::make_unique<BatchScheduler>(
            *database_.engine, layout(), limits, observer, database_.packing_tables,
            database_.canary ? &*database_.canary : nullptr, &polynomials_)) {}

  const LoadedDatabase& database() const { return database_; }
  const Layout& layout() const { return database_.manifest.layout; }
  const Engine& engine() const { return *database_.engine; }

  // The manifest that clients get. Any thread.
  std::shared_ptr<const std::string> manifest_text() const {
    const std::lock_guard lock(manifest_mutex_);
    return manifest_text_;
  }
  // A manifest of this epoch, with another signature or none. Nothing else of the epoch changes.
  // Any thread.
  void replace_manifest_text(std::string text) const {
    auto shared = std::make_shared<const std::string>(std::move(text));
    const std::lock_guard lock(manifest_mutex_);
    manifest_text_ = std::move(shared);
  }

  // Any number of threads may ask it, also if they see the epoch as const.
  BatchScheduler& scheduler() const { return *scheduler_; }

 private:
  const LoadedDatabase database_;
  const ring::PublicPolynomials polynomials_;
  mutable std::mutex manifest_mutex_;
  mutable std::shared_ptr<const std::string> manifest_text_;
  const std::unique_ptr<BatchScheduler>
      scheduler_;  // last, so that its worker ends before its engine does
};

enum class EpochState {
  kCurrent,
  kGrace,      // replaced; clients still get it
  kLeaving,    // clients do not get it any more; queries that have begun hold it
  kDownloads,  // all of it has gone except what clients download, which downloads that have begun
               // hold
};

struct EpochInMemory {
  EpochId id;
  EpochState state = EpochState::kCurrent;
  std::shared_ptr<const ServingEpoch> epoch;  // none in the state kDownloads
  std::shared_ptr<const EpochDownloads> downloads;
  std::chrono::steady_clock::time_point grace_ends = {};  // in the state kGrace
};

// The epochs that clients get: the current one, and earlier ones during their period of grace.
// Queries hold the epoch that they started with until they are answered. A download holds the data
// that it sends. Any thread.
class ServedEpochs {
 public:
  using Clock = std::chrono::steady_clock;

  explicit ServedEpochs(std::shared_ptr<const ServingEpoch> current)
      : current_(std::move(current)) {}

  std::shared_ptr<const ServingEpoch> current() const;
  // The current one first.
  std::vector<std::shared_ptr<const ServingEpoch>> all() const;
  // All epochs that hold memory: the current one first, then the newest.
  std::vector<EpochInMemory> in_memory() const;

  struct Found {
    std::shared_ptr<const ServingEpoch> epoch;  // nullptr when none of this id is served
    bool is_retired = false;  // it was served, or published, and has been replaced
    EpochId current;
  };
  Found find(std::string_view id) const;

  // Makes `next` the current epoch. The one before it is served until `grace_ends`.
  void replace(std::shared_ptr<const ServingEpoch> next, Clock::time_point grace_ends);
  // Ends the grace of the oldest epoch that has any.
  void end_oldest_grace();
  // Frees, on this thread, the epochs whose grace has ended and which no query holds any more.
  // Returns the number of epochs that have left memory, all together.
  size_t retire(Clock::time_point now);

 private:
  struct Graced {
    std::shared_ptr<const ServingEpoch> epoch;
    Clock::time_point ends;
  };

  mutable std::mutex mutex_;
  std::shared_ptr<const ServingEpoch> current_;
  std::vector<Graced> graced_;  // the newest last
  // The epochs whose grace has ended. They are held here, so that none is destroyed with the last
  // request for it, on the thread of that request.
  std::vector<std::shared_ptr<const ServingEpoch>> leaving_;
  struct Downloaded {
    EpochId id;
    std::weak_ptr<const EpochDownloads> downloads;
  };
  std::vector<Downloaded> downloaded_;  // the newest last
  std::vector<EpochId> retired_;        // of those served here
};

}  // namespace blindfuse
