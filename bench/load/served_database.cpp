#include "bench/load/served_database.h"

#include <blindfuse/errors.h>

#include <chrono>
#include <thread>

#include "client/api_key.h"
#include "client/cache_folder.h"
#include "client/http_transport.h"
#include "src/system/file.h"

namespace blindfuse::load {
namespace {

constexpr int kAttempts = 20;

std::unique_ptr<Transport> transport_to(const Options& options, const std::string& api_key) {
  return std::make_unique<HttpTransport>(
      parse_url(options.url),
      HttpOptions{std::chrono::seconds(options.timeout_s), options.ca_file, api_key});
}

}  // namespace

std::string api_key_of(const Options& options) {
  return options.api_key_file.empty() ? "" : read_api_key(options.api_key_file);
}

ServedDatabase::ServedDatabase(const Options& options, const std::string& api_key)
    : remote_(transport_to(options, api_key), parse_url(options.url).text(),
              std::chrono::seconds(options.timeout_s)),
      hints_(database_folder(options.cache, remote_.address())) {}

DatabaseDescription ServedDatabase::sync() {
  for (int attempt = 1;; ++attempt) {
    try {
      SyncResult result;
      return hints_.sync(remote_, remote_.fetch_manifest(), false, {}, result);
    } catch (const EpochGone&) {
      // The server went on to another epoch after it sent its manifest.
      if (attempt == kAttempts) throw;
    } catch (const ServerBusy&) {
      if (attempt == kAttempts) throw;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
  }
}

}  // namespace blindfuse::load
