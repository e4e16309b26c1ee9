#include "host/server/routes/problem.h"

#include <nlohmann/json.hpp>

#include "src/base/errors.h"

namespace blindfuse {
namespace {

struct KindText {
  ProblemKind kind;
  int status;
  std::string_view slug;
  std::string_view title;
};

// The first kind of a status is the one that says no more than the status.
constexpr KindText kKinds[] = {
    {ProblemKind::kMalformedRequest, 400, "malformed-request", "Malformed request"},
    {ProblemKind::kMalformedQueries, 400, "malformed-queries", "Malformed queries"},
    {ProblemKind::kMalformedShards, 400, "malformed-shards", "Malformed shard selection"},
    {ProblemKind::kUnauthorized, 401, "unauthorized", "Unauthorized"},
    {ProblemKind::kForbidden, 403, "forbidden", "Forbidden"},
    {ProblemKind::kUnknownRoute, 404, "unknown-route", "Unknown route"},
    {ProblemKind::kUnknownEpoch, 404, "unknown-epoch", "Unknown epoch"},
    {ProblemKind::kMethodNotAllowed, 405, "method-not-allowed", "Method not allowed"},
    {ProblemKind::kRequestTimeout, 408, "request-timeout", "Request timeout"},
    {ProblemKind::kRetiredEpoch, 410, "retired-epoch", "Retired epoch"},
    {ProblemKind::kLengthRequired, 411, "length-required", "Length required"},
    {ProblemKind::kBodyTooLarge, 413, "body-too-large", "Body too large"},
    {ProblemKind::kTargetTooLong, 414, "target-too-long", "Request target too long"},
    {ProblemKind::kUnsupportedMediaType, 415, "unsupported-media-type", "Unsupported media type"},
    {ProblemKind::kRangeNotSatisfiable, 416, "range-not-satisfiable", "Range not satisfiable"},
    {ProblemKind::kOverQuota, 429, "over-quota", "Over quota"},
    {ProblemKind::kHeaderTooLarge, 431, "header-too-large", "Request header too large"},
    {ProblemKind::kInternalError, 500, "internal-error", "Internal error"},
    {ProblemKind::kUnknownMethod, 501, "unknown-method", "Unknown method"},
    {ProblemKind::kBusy, 503, "busy", "Busy"},
    {ProblemKind::kTimedOut, 503, "timed-out", "Timed out"},
    {ProblemKind::kEngineFailed, 503, "engine-failed", "Engine failed"},
    {ProblemKind::kStopping, 503, "stopping", "Stopping"},
    {ProblemKind::kUnsupportedVersion, 505, "unsupported-version", "Unsupported HTTP version"},
};

const KindText& text_of(ProblemKind kind) {
  for (const KindText& text : kKinds) {
    if (text.kind == kind) return text;
  }
  abort_broken_invariant("every kind of problem is in the table", __FILE__, __LINE__);
}

}  // namespace

int Problem::status() const { return text_of(kind).status; }

std::string serialize_problem(const Problem& problem) {
  const KindText& text = text_of(problem.kind);
  nlohmann::ordered_json object;
  object["type"] = "urn:blindfuse:problem:" + std::string(text.slug);
  object["title"] = text.title;
  object["status"] = text.status;
  object["detail"] = problem.detail;
  if (problem.epoch) object["epoch"] = *problem.epoch;
  return object.dump() + "\n";
}

http::Response problem_response(const Problem& problem) {
  http::Response response{.status = problem.status(), .text = serialize_problem(problem)};
  response.set_header("Cache-Control", "no-store");
  response.set_header("Content-Type", std::string(kProblemContentType));
  for (const auto& [name, value] : problem.headers) response.set_header(name, value);
  return response;
}

Problem problem_of(const http::Error& error) {
  Problem problem{.detail = error.what(), .headers = error.headers()};
  for (const KindText& text : kKinds) {
    if (text.status != error.status()) continue;
    problem.kind = text.kind;
    break;
  }
  return problem;
}

}  // namespace blindfuse
