// Which route a request is for.
#pragma once

#include <string>
#include <string_view>

namespace blindfuse {

enum class Route { kDatabase, kShards, kHint, kQueries, kLive, kReady, kOpenApi, kPage };

// As metrics and logs name it.
std::string_view name_of(Route route);

struct RouteMatch {
  Route route = Route::kDatabase;
  std::string epoch;  // what the path says; empty for routes without one
};

// Throws Refusal: 404 for a path that there is not, 405 with Allow for a method that its path does
// not have.
RouteMatch match_route(std::string_view method, std::string_view path);

// The methods of a route, as in the header Allow.
std::string_view methods_of(Route route);

}  // namespace blindfuse
