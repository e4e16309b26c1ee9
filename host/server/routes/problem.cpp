#include "host/server/routes/problem.h"

#include <nlohmann/json.hpp>

#include "host/server/serving/batch_scheduler.h"
#include "src/base/errors.h"
#include "src/program/log.h"

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

ProblemKind kind_of(int status) {
  for (const KindText& text : kKinds) {
    if (text.status == status) return text.kind;
  }
  return ProblemKind::kInternalError;
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

// The queue empties in a few batches, each of which takes well below a second.
Problem for_now(ProblemKind kind, std::string detail, std::chrono::seconds retry_after) {
  return {.kind = kind,
          .detail = std::move(detail),
          .headers = {{"Retry-After", std::to_string(retry_after.count())}}};
}

Problem problem_of(const std::exception& error, ProblemKind malformed) {
  const auto* refusal = dynamic_cast<const Refusal*>(&error);
  if (refusal != nullptr) return refusal->problem();
  if (const auto* refused = dynamic_cast<const http::Error*>(&error)) {
    return {.kind = kind_of(refused->status()),
            .detail = refused->what(),
            .headers = refused->headers()};
  }
  if (dynamic_cast<const InputError*>(&error) != nullptr) {
    return {.kind = malformed, .detail = error.what()};
  }
  if (dynamic_cast<const QueueFull*>(&error) != nullptr) {
    return for_now(ProblemKind::kBusy, error.what());
  }
  if (const auto* quota = dynamic_cast<const OverQuota*>(&error)) {
    return for_now(ProblemKind::kOverQuota, error.what(), quota->retry_after());
  }
  if (dynamic_cast<const SchedulerStopped*>(&error) != nullptr) {
    return for_now(ProblemKind::kStopping, error.what());
  }
  log_error("a request failed: {}", error.what());
  return {.detail = "the server failed to answer this request"};
}

}  // namespace blindfuse
