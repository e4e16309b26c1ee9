#include "bench/load/window.h"

#include <algorithm>

namespace blindfuse::load {
namespace {

// The members that are sums, by their names.
template <class AnyWindow, class Visit>
void for_each_sum(AnyWindow& window, const Visit& visit) {
  visit("requests", window.requests);
  visit("lookups", window.lookups);
  visit("bytes_up", window.bytes_up);
  visit("bytes_down", window.bytes_down);
  visit("reconnects", window.reconnects);
  visit("resent", window.resent);
  visit("waiting", window.waiting);
  visit("given_up", window.given_up);
  visit("cpu_seconds", window.cpu_seconds);
  visit("idle_reopened", window.idle_reopened);
  visit("slow_answered", window.slow_answered);
  visit("slow_closed", window.slow_closed);
}

}  // namespace

void Window::merge(const Window& other) {
  const nlohmann::json others = other.to_json();
  for_each_sum(*this, [&]<class T>(const char* name, T& sum) { sum += others.at(name).get<T>(); });
  // All processes see the same changes, over the same time.
  epoch_changes = std::max(epoch_changes, other.epoch_changes);
  paused_seconds = std::max(paused_seconds, other.paused_seconds);
  seconds = std::max(seconds, other.seconds);
  latency.merge(other.latency);
  refused.merge(other.refused);
  for (const auto& [kind, count] : other.errors) errors[kind] += count;
}

nlohmann::json Window::to_json() const {
  nlohmann::json json = {
      {"seconds", seconds}, {"latency", latency.to_json()},   {"refused", refused.to_json()},
      {"errors", errors},   {"epoch_changes", epoch_changes}, {"paused_seconds", paused_seconds}};
  for_each_sum(*this, [&](const char* name, const auto& sum) { json[name] = sum; });
  return json;
}

Window Window::from_json(const nlohmann::json& json) {
  Window window;
  json.at("seconds").get_to(window.seconds);
  window.latency = LatencyHistogram::from_json(json.at("latency"));
  window.refused = LatencyHistogram::from_json(json.at("refused"));
  json.at("errors").get_to(window.errors);
  json.at("epoch_changes").get_to(window.epoch_changes);
  json.at("paused_seconds").get_to(window.paused_seconds);
  for_each_sum(window, [&](const char* name, auto& sum) { json.at(name).get_to(sum); });
  return window;
}

}  // namespace blindfuse::load
