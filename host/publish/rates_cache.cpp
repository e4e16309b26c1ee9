#include "host/publish/rates_cache.h"

#include <cstdlib>
#include <string>

#include "src/base/errors.h"
#include "src/program/log.h"
#include "src/system/file.h"

namespace blindfuse {

std::optional<std::filesystem::path> rates_cache_file() {
  const std::filesystem::path name = std::filesystem::path("blindfuse") / "rates.json";
  // The XDG base directory specification says to ignore relative paths.
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && cache[0] == '/') {
    return cache / name;
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/') {
    return std::filesystem::path(home) / ".cache" / name;
  }
  return std::nullopt;
}

Rates RatesCache::get(bool measure_again) {
  if (!measure_again) {
    if (auto rates = kept()) return *rates;
  }
  log_info("measuring the rates of this machine, which takes a second or two");
  const Rates rates{origin_, measure_()};
  keep(rates);
  return rates;
}

// Whatever else is in its place is replaced.
std::optional<Rates> RatesCache::kept() const {
  std::error_code error;
  if (!file_ || !std::filesystem::exists(*file_, error)) return std::nullopt;
  try {
    Rates rates = parse_rates(read_file(*file_, kRatesBytesMax), file_->string());
    if (rates.origin == origin_) return rates;
  } catch (const InputError&) {
  } catch (const ResourceError&) {
  }
  return std::nullopt;
}

void RatesCache::keep(const Rates& rates) const {
  if (!file_) return;
  try {
    make_folder(file_->parent_path());
    PendingFile pending(file_->parent_path());
    pending.write(serialize_rates(rates));
    pending.commit(file_->filename().string());
  } catch (const std::exception& error) {
    log_warning("the rates of this machine are not kept, so that each plan measures them: {}",
                error.what());
  }
}

}  // namespace blindfuse
