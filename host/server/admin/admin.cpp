#include "host/server/admin/admin.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "host/server/http/local_name.h"
#include "host/server/routes/health.h"
#include "host/server/routes/problem.h"
#include "host/server/serving/server_state.h"
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

// Whether a method is one of those in a header Allow.
bool has(std::string_view methods, std::string_view method) {
  for (size_t at = methods.find(method); at != std::string_view::npos;
       at = methods.find(method, at + 1)) {
    const size_t end = at + method.size();
    const bool is_whole =
        (at == 0 || methods[at - 1] == ' ') && (end == methods.size() || methods[end] == ',');
    if (is_whole) return true;
  }
  return false;
}

// Names, as a sentence lists them.
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

}  // namespace

struct Admin::Request {
  const http::RequestHead& head;
  const std::string& peer;
  const std::string& body;
};

struct Admin::Address {
  std::string_view path;
  std::string_view methods;  // as in the header Allow
  AdminAccess access;        // the least that an admin listener must have for it
  Answer answer;
};

const Admin::Address* Admin::find(std::string_view path) {
  constexpr auto kPublic = AdminAccess::kMetricsAndHealth;
  constexpr auto kLocal = AdminAccess::kEverything;
  static constexpr std::array<Address, 6> kAddresses = {{
      {"/metrics", "GET, HEAD", kPublic, &Admin::answer_metrics},
      {"/health/live", "GET, HEAD", kPublic, &Admin::answer_live},
      {"/health/ready", "GET, HEAD", kPublic, &Admin::answer_ready},
      {"/epochs", "GET, HEAD", kLocal, &Admin::answer_epochs},
      {"/log-level", "GET, HEAD, PUT", kLocal, &Admin::answer_log_level},
      {"/drain", "GET, HEAD, PUT, DELETE", kLocal, &Admin::answer_drain},
  }};
  const auto* found = std::ranges::find(kAddresses, path, &Address::path);
  return found == kAddresses.end() ? nullptr : found;
}

// One request to the admin listener.
class Admin::Exchange final : public http::Exchange {
 public:
  Exchange(Admin& admin, http::RequestHead head, std::string peer)
      : admin_(admin), head_(std::move(head)), peer_(std::move(peer)) {}

  std::optional<uint64_t> body_bytes_max() const override {
    if (!head_.has_body()) return std::nullopt;
    return kBodyBytesMax;
  }

  uint64_t take_body(std::span<char> body) override {
    body_.assign(body.begin(), body.end());
    return 0;  // a few kilobytes, of at most as many as there are connections
  }

  http::Response respond() override {
    try {
      return admin_.answer({head_, peer_, body_});
    } catch (const Refusal& refusal) {
      return problem_response(refusal.problem());
    } catch (const std::exception& error) {
      log_error("a request to the admin listener failed: {}", error.what());
      return problem_response({.detail = "the server failed to answer this request"});
    }
  }

  http::Response refuse(const http::Error& error, uint64_t /*body_bytes*/) override {
    return problem_response(problem_of(error));
  }

 private:
  Admin& admin_;
  const http::RequestHead head_;
  const std::string peer_;
  std::string body_;
};

Admin::Admin(const ServedEpochs& epochs, ServerMetrics& metrics, Readiness& readiness,
             AdminAccess access)
    : epochs_(epochs), metrics_(metrics), readiness_(readiness), access_(access) {}

std::unique_ptr<http::Exchange> Admin::begin(http::RequestHead head, const std::string& peer) {
  return std::make_unique<Exchange>(*this, std::move(head), peer);
}

http::Response Admin::refuse(const http::Error& error, const std::string& /*peer*/) {
  return problem_response(problem_of(error));
}

uint64_t Admin::all_bodies_bytes_max() const { return 64 * kBodyBytesMax; }

// They are a few kilobytes each.
uint64_t Admin::all_responses_bytes_max() const { return std::numeric_limits<uint64_t>::max(); }

// Throws Refusal.
http::Response Admin::answer(const Request& request) {
  const http::RequestHead& head = request.head;
  const Address* address = find(head.path);
  if (address == nullptr) {
    throw Refusal(ProblemKind::kUnknownRoute,
                  "the admin listener has /metrics, /health/live, /health/ready, /epochs, "
                  "/log-level and /drain");
  }
  if (access_ != AdminAccess::kEverything && address->access == AdminAccess::kEverything) {
    throw Refusal(ProblemKind::kForbidden,
                  "this admin listener has metrics and health alone; give --admin-listen a "
                  "loopback address or a UNIX socket for the rest");
  }
  // A web page whose name leads to this machine could read otherwise what is here.
  if (access_ == AdminAccess::kEverything && request.peer != "unix" &&
      !http::is_local_name(head.host)) {
    throw Refusal(ProblemKind::kForbidden,
                  "this admin listener is asked as localhost, or by its address");
  }
  if (!has(address->methods, head.method)) {
    const std::string methods(address->methods);
    throw Refusal(Problem{.kind = ProblemKind::kMethodNotAllowed,
                          .detail = std::string(address->path) + " takes " + methods,
                          .headers = {{"Allow", methods}}});
  }
  const bool changes = head.method != "GET" && head.method != "HEAD";
  // Browsers add this header to what a page asks for: a page that the operator has open cannot take
  // the service out.
  if (changes && !head.header("Origin").empty()) {
    throw Refusal(ProblemKind::kForbidden, "web pages may not change anything here");
  }
  return (this->*address->answer)(request);
}

http::Response Admin::answer_metrics(const Request&) {
  http::Response response{.text = metrics_.text(state_of(epochs_))};
  response.set_header("Content-Type", std::string(kMetricsContentType));
  response.set_header("Cache-Control", "no-store");
  return response;
}

http::Response Admin::answer_live(const Request&) { return live_response(); }

http::Response Admin::answer_ready(const Request&) { return ready_response(readiness_); }

http::Response Admin::answer_epochs(const Request&) {
  ordered_json epochs = ordered_json::array();
  for (const EpochInMemory& held : epochs_.in_memory()) epochs.push_back(description_of(held));
  return json_response({{"epochs", std::move(epochs)}});
}

http::Response Admin::answer_log_level(const Request& request) {
  if (request.head.method == "PUT") {
    const std::string level = level_in(request.body);
    log_warning("log level {}, as {} asked over the admin listener", level, request.peer);
    set_log_level(level);
  }
  return json_response({{"level", log_level()}});
}

http::Response Admin::answer_drain(const Request& request) {
  const std::string& method = request.head.method;
  if (method == "PUT" || method == "DELETE") {
    const bool draining = method == "PUT";
    readiness_.set_draining(draining);
    log_info("{}, as {} asked over the admin listener",
             draining ? "draining: not ready for new clients" : "not draining any more",
             request.peer);
  }
  return json_response({{"draining", readiness_.is_draining()}});
}

}  // namespace blindfuse
