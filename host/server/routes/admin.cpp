#include "host/server/routes/admin.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "host/server/http/connection.h"
#include "host/server/routes/problem.h"
#include "src/program/log.h"

namespace blindfuse {
namespace {

using nlohmann::ordered_json;

constexpr uint64_t kBodyBytesMax = 1024;

http::Response json_response(const ordered_json& value) {
  http::Response response{.text = value.dump() + "\n"};
  response.set_header("Content-Type", "application/json");
  response.set_header("Cache-Control", "no-store");
  return response;
}

std::string_view name_of(EpochState state) {
  switch (state) {
    case EpochState::kCurrent:
      return "current";
    case EpochState::kGrace:
      return "grace";
    case EpochState::kLeaving:
      return "leaving";
    case EpochState::kDownloads:
      return "downloads";
  }
  return "";
}

ordered_json description_of(const EpochInMemory& held) {
  ordered_json object{{"epoch", held.id},
                      {"state", name_of(held.state)},
                      {"hint_bytes", held.downloads->hint_bytes()}};
  if (held.epoch) {
    const Layout& layout = held.epoch->layout();
    object["keys"] = layout.key_count;
    object["matrix_bytes"] = layout.matrix_bytes();
    object["packing_table_bytes"] = layout.packing_table_bytes();
    object["queries_waiting"] = held.epoch->scheduler().waiting_count();
  }
  if (held.state == EpochState::kGrace) {
    const std::chrono::duration<double> left = held.grace_ends - ServedEpochs::Clock::now();
    object["grace_seconds_left"] = std::ceil(std::max(0.0, left.count()));
  }
  return object;
}

// Joins names as a sentence lists them.
std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string level_in(std::string_view body) {
  const auto object = nlohmann::json::parse(body, nullptr, false);
  const std::vector<std::string> levels = log_level_names();
  if (object.is_object() && object.size() == 1 && object.contains("level")) {
    const auto* level = object["level"].get_ptr<const std::string*>();
    if (level != nullptr && std::ranges::find(levels, *level) != levels.end()) return *level;
  }
  throw Refusal(ProblemKind::kMalformedRequest,
                "a level is set with {\"level\":\"info\"}; the levels are " + listed(levels));
}

struct AdminContext {
  const ServedEpochs& epochs;
  ServerMetrics& metrics;
  Readiness& readiness;
  const AdminAccess access;
};

struct AdminRequest {
  const AdminContext& context;
  const http::RequestHead& head;
  const std::string& peer;
  std::string body;
};

http::Response answer_metrics(const AdminRequest& request) {
  http::Response response{.text = request.context.metrics.text(request.context.epochs)};
  response.set_header("Content-Type", std::string(kMetricsContentType));
  response.set_header("Cache-Control", "no-store");
  return response;
}

http::Response answer_live(const AdminRequest&) { return live_response(); }

http::Response answer_ready(const AdminRequest& request) {
  return ready_response(request.context.readiness);
}

http::Response answer_epochs(const AdminRequest& request) {
  ordered_json epochs = ordered_json::array();
  for (const EpochInMemory& held : request.context.epochs.in_memory()) {
    epochs.push_back(description_of(held));
  }
  return json_response({{"epochs", std::move(epochs)}});
}

http::Response answer_log_level(const AdminRequest& request) {
  if (request.head.method == "PUT") {
    const std::string level = level_in(request.body);
    log_warning("log level {}, as {} asked over the admin listener", level, request.peer);
    set_log_level(level);
  }
  return json_response({{"level", log_level()}});
}

http::Response answer_drain(const AdminRequest& request) {
  Readiness& readiness = request.context.readiness;
  const std::string& method = request.head.method;
  if (method == "PUT" || method == "DELETE") {
    const bool draining = method == "PUT";
    readiness.set_draining(draining);
    log_info("{}, as {} asked over the admin listener",
             draining ? "draining: not ready for new clients" : "not draining any more",
             request.peer);
  }
  return json_response({{"draining", readiness.is_draining()}});
}

struct Address {
  std::string_view path;
  std::string_view methods;  // as in the header Allow
  AdminAccess access;        // the least that an admin listener must have for it
  http::Response (*answer)(const AdminRequest& request);
};

constexpr auto kPublic = AdminAccess::kMetricsAndHealth;
constexpr auto kLocal = AdminAccess::kEverything;
constexpr std::array<Address, 6> kAddresses = {{
    {"/metrics", "GET, HEAD", kPublic, answer_metrics},
    {"/health/live", "GET, HEAD", kPublic, answer_live},
    {"/health/ready", "GET, HEAD", kPublic, answer_ready},
    {"/epochs", "GET, HEAD", kLocal, answer_epochs},
    {"/log-level", "GET, HEAD, PUT", kLocal, answer_log_level},
    {"/drain", "GET, HEAD, PUT, DELETE", kLocal, answer_drain},
}};

// Throws Refusal.
http::Response answer_admin(const AdminRequest& request) {
  const http::RequestHead& head = request.head;
  const bool is_local = request.context.access == kLocal;
  const auto* address = std::ranges::find(kAddresses, head.path, &Address::path);
  if (address == kAddresses.end()) {
    throw Refusal(ProblemKind::kUnknownRoute,
                  "the admin listener has /metrics, /health/live, /health/ready, /epochs, "
                  "/log-level and /drain");
  }
  if (!is_local && address->access == kLocal) {
    throw Refusal(ProblemKind::kForbidden,
                  "this admin listener has metrics and health alone; give --admin-listen a "
                  "loopback address or a UNIX socket for the rest");
  }
  // A web page under a name that leads to this machine could otherwise read the answers.
  if (is_local && request.peer != "unix" && !http::is_local_name(head.host)) {
    throw Refusal(ProblemKind::kForbidden,
                  "this admin listener is asked as localhost, or by its address");
  }
  const auto methods = http::list_items(address->methods);
  if (std::ranges::find(methods, head.method) == methods.end()) {
    const std::string allowed(address->methods);
    throw Refusal(Problem{.kind = ProblemKind::kMethodNotAllowed,
                          .detail = std::string(address->path) + " takes " + allowed,
                          .headers = {{"Allow", allowed}}});
  }
  const bool changes = head.method != "GET" && head.method != "HEAD";
  // Browsers add this header to a page's requests, so that a page that the operator has open cannot
  // take the service out.
  if (changes && !head.header("Origin").empty()) {
    throw Refusal(ProblemKind::kForbidden, "web pages may not change anything here");
  }
  return address->answer(request);
}

class Admin final : public http::Handler {
 public:
  explicit Admin(const AdminContext& context) : context_(context) {}

  // The responses are a few kilobytes, and at most as many as there are connections.
  http::Awaitable<http::Response> answer(http::Connection& client) override {
    try {
      AdminRequest request{context_, client.head(), client.peer(), {}};
      if (client.head().has_body()) {
        const auto body = co_await client.read_body(kBodyBytesMax, 64 * kBodyBytesMax);
        request.body.assign(body.begin(), body.end());
      }
      co_return answer_admin(request);
    } catch (const http::ClientLeft&) {
      throw;
    } catch (const std::exception& error) {
      co_return problem_response(problem_of(error));
    }
  }

  http::Response refuse(const http::Error& error, const std::string& /*peer*/) override {
    return problem_response(problem_of(error));
  }

 private:
  const AdminContext context_;
};

// It stops after the clients' listener. A caller that waits for both has to add this time to drain.
http::Options admin_options() {
  return {.threads = 1,
          .connections_max = AdminServer::kConnectionsMax,
          .timeouts = {.drain = std::chrono::seconds(5)}};
}

}  // namespace

AdminServer::AdminServer(const ServedEpochs& epochs, ServerMetrics& metrics, Readiness& readiness,
                         http::ListeningSocket socket, AdminAccess access)
    : handler_(std::make_shared<Admin>(AdminContext{epochs, metrics, readiness, access})),
      server_(*handler_, std::move(socket), admin_options()) {}

}  // namespace blindfuse
