#include "host/server/router.h"

#include "host/server/problem.h"

namespace blindfuse {
namespace {

struct RoutePath {
  Route route;
  std::string_view prefix;
  std::string_view suffix;  // not empty: the epoch lies between
};

constexpr RoutePath kPaths[] = {
    {Route::kDatabase, "/v1/database", ""}, {Route::kShards, "/v1/epochs/", "/shards"},
    {Route::kHint, "/v1/epochs/", "/hint"}, {Route::kQueries, "/v1/epochs/", "/queries"},
    {Route::kLive, "/health/live", ""},     {Route::kReady, "/health/ready", ""},
};

bool matches(const RoutePath& at, std::string_view path, std::string_view& epoch) {
  if (at.suffix.empty()) return path == at.prefix;
  if (!path.starts_with(at.prefix) || !path.ends_with(at.suffix)) return false;
  if (path.size() <= at.prefix.size() + at.suffix.size()) return false;
  epoch = path.substr(at.prefix.size(), path.size() - at.prefix.size() - at.suffix.size());
  return epoch.find('/') == std::string_view::npos;
}

void check_method(Route route, std::string_view method) {
  const bool queries = route == Route::kQueries;
  if (queries ? method == "POST" : (method == "GET" || method == "HEAD")) return;
  const std::string allowed = queries ? "POST" : "GET, HEAD";
  throw Refusal(Problem{.kind = ProblemKind::kMethodNotAllowed,
                        .detail = "this route takes " + allowed,
                        .headers = {{"Allow", allowed}}});
}

}  // namespace

RouteMatch match_route(std::string_view method, std::string_view path) {
  for (const RoutePath& at : kPaths) {
    std::string_view epoch;
    if (!matches(at, path, epoch)) continue;
    check_method(at.route, method);
    return {at.route, std::string(epoch)};
  }
  throw Refusal(ProblemKind::kUnknownRoute, "this server has no such route");
}

}  // namespace blindfuse
