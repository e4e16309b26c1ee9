// Keeps the rates of this machine in the user's cache, so that only the first plan measures them.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>

#include "host/publish/rates.h"

namespace blindfuse {

// $XDG_CACHE_HOME/blindfuse/rates.json or ~/.cache/blindfuse/rates.json. Nothing if neither
// variable is set.
std::optional<std::filesystem::path> rates_cache_file();

class RatesCache {
 public:
  // file: nothing if rates are not to be kept.
  explicit RatesCache(std::optional<std::filesystem::path> file,
                      RatesOrigin origin = rates_origin(),
                      std::function<CoreRates()> measure = measure_core_rates)
      : file_(std::move(file)), origin_(std::move(origin)), measure_(std::move(measure)) {}

  // The rates that are kept, if they are of this origin. Otherwise, or if measure_again, measures
  // them and keeps them. A file that cannot be read or written makes a line in the log, and not an
  // error. Throws the errors of the measurement.
  Rates get(bool measure_again);

 private:
  std::optional<Rates> kept() const;
  void keep(const Rates& rates) const;

  const std::optional<std::filesystem::path> file_;
  const RatesOrigin origin_;
  const std::function<CoreRates()> measure_;
};

}  // namespace blindfuse
