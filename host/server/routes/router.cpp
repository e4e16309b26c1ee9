#include "host/server/routes/router.h"

#include "host/server/routes/problem.h"

namespace blindfuse {
namespace {

struct RoutePath {
  Route route;
  std::string_view name;
  std::string_view prefix;
  std::string_view suffix;  // not empty: the epoch lies between; or kAnything
};

// After its prefix, any path.
constexpr std::string_view kAnything = "*";

constexpr RoutePath kPaths[] = {
    {Route::kDatabase, "database", "/v1/database", ""},
    {Route::kShards, "shards", "/v1/epochs/", "/shards"},
    {Route::kHint, "hint", "/v1/epochs/", "/hint"},
    {Route::kQueries, "queries", "/v1/epochs/", "/queries"},
    {Route::kLive, "live", "/health/live", ""},
    {Route::kReady, "ready", "/health/ready", ""},
    {Route::kOpenApi, "openapi", "/openapi.json", ""},
    {Route::kPage, "page", "/", ""},
    {Route::kPage, "page", "/page/", kAnything},
    {Route::kPage, "page", "/client/", kAnything},
};

bool matches(const RoutePath& at, std::string_view path, std::string_view& epoch) {
  if (at.suffix.empty()) return path == at.prefix;
  if (at.suffix == kAnything) return path.starts_with(at.prefix);
  if (!path.starts_with(at.prefix) || !path.ends_with(at.suffix)) return false;
  if (path.size() <= at.prefix.size() + at.suffix.size()) return false;
  epoch = path.substr(at.prefix.size(), path.size() - at.prefix.size() - at.suffix.size());
  return epoch.find('/') == std::string_view::npos;
}

void check_method(Route route, std::string_view method) {
  const bool queries = route == Route::kQueries;
  if (queries ? method == "POST" : (method == "GET" || method == "HEAD")) return;
  const std::string allowed(methods_of(route));
  throw Refusal(Problem{.kind = ProblemKind::kMethodNotAllowed,
                        .detail = "this route takes " + allowed,
                        .headers = {{"Allow", allowed}}});
}

}  // namespace

std::string_view name_of(Route route) {
  for (const RoutePath& at : kPaths) {
    if (at.route == route) return at.name;
  }
  return "none";
}

std::string_view methods_of(Route route) { return route == Route::kQueries ? "POST" : "GET, HEAD"; }

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
