// Finds the route of a request.
#pragma once

#include <string>
#include <string_view>

namespace blindfuse {

enum class Route { kDatabase, kShards, kHint, kQueries, kLive, kReady, kOpenApi, kPage };

// The name of a route in metrics and logs.
std::string_view name_of(Route route);

struct RouteMatch {
  Route route = Route::kDatabase;
  std::string epoch;  // what the path says; empty for routes without one
};

// Throws Refusal: 404 if there is no such path, 405 with Allow if the path does not have the
// method.
RouteMatch match_route(std::string_view method, std::string_view path);

// The methods of a route, as in the header Allow.
std::string_view methods_of(Route route);

}  // namespace blindfuse
