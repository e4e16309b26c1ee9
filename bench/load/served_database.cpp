#include "bench/load/served_database.h"

#include <blindfuse/errors.h>

#include <chrono>
#include <thread>

#include "client/cache_folder.h"

namespace blindfuse::load {
namespace {

constexpr int kAttempts = 20;

}  // namespace

ServedDatabase::ServedDatabase(const Target& target, const Options& options)
    : remote_(transport_to(target, options), target.text(),
              std::chrono::seconds(options.timeout_s)),
      hints_(database_folder(options.cache, remote_.address())) {}

DatabaseDescription ServedDatabase::sync() {
  for (int attempt = 1;; ++attempt) {
    try {
      SyncResult result;
      return hints_.sync(remote_, remote_.fetch_manifest(), false, {}, result);
    } catch (const EpochGoneError&) {
      // The server went on to another epoch after it sent its manifest.
      if (attempt == kAttempts) throw;
    } catch (const ServerBusyError&) {
      if (attempt == kAttempts) throw;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
  }
}

}  // namespace blindfuse::load
