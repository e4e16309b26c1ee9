#include "host/server/routes/access_log.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "host/server/serving/serving_epoch.h"
#include "src/program/log.h"

namespace blindfuse {

void log_access(const AccessEvent& event) {
  if (event.route == Route::kLive || event.route == Route::kReady) return;
  nlohmann::ordered_json members = {
      {"method", event.method},         {"route", event.route ? name_of(*event.route) : "none"},
      {"status", event.status},         {"received_bytes", event.received_bytes},
      {"sent_bytes", event.sent_bytes}, {"ms", std::round(event.time.count() * 1e4) / 10},
      {"client", event.peer},
  };
  if (!event.epoch.empty()) members["epoch"] = short_epoch(event.epoch);
  if (event.query_count > 0) members["queries"] = event.query_count;
  if (!event.key_name.empty()) members["key"] = event.key_name;
  log_event(LogLevel::kInfo, "request", members);
}

}  // namespace blindfuse
