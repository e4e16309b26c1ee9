// Errors for clients: problem details (RFC 9457), with one kind for each reaction that a client can
// have.
#pragma once

#include <chrono>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "host/server/http/response.h"
#include "src/protocol/manifest.h"

namespace blindfuse {

inline constexpr std::string_view kProblemContentType = "application/problem+json";

// docs/HTTP_API.md lists the status and the type of each.
enum class ProblemKind {
  kMalformedRequest,
  kMalformedQueries,
  kMalformedShards,
  kUnauthorized,
  kForbidden,
  kUnknownRoute,
  kUnknownEpoch,
  kMethodNotAllowed,
  kRequestTimeout,
  kRetiredEpoch,
  kLengthRequired,
  kBodyTooLarge,
  kTargetTooLong,
  kUnsupportedMediaType,
  kRangeNotSatisfiable,
  kOverQuota,
  kHeaderTooLarge,
  kInternalError,
  kUnknownMethod,
  kBusy,
  kTimedOut,
  kEngineFailed,
  kStopping,
  kUnsupportedVersion,
};

struct Problem {
  ProblemKind kind = ProblemKind::kInternalError;
  std::string detail = {};            // one sentence; nothing of a request's body
  std::optional<EpochId> epoch = {};  // the current one, when the client asked for another
  std::vector<std::pair<std::string, std::string>> headers = {};  // of its response, besides

  int status() const;
};

// A JSON object: type (urn:blindfuse:problem:<slug>), title, status, detail, and epoch if there is
// one.
std::string serialize_problem(const Problem& problem);

// A response with the document as its body. Caches must not store it: an error, such as an epoch
// that has not arrived here, may be over in a moment.
http::Response problem_response(const Problem& problem);

// A problem that may be over in a moment, with the time after which a client may try again.
Problem for_now(ProblemKind kind, std::string detail,
                std::chrono::seconds retry_after = std::chrono::seconds(1));

// The problem for anything that was thrown on the way to a response: that of a Refusal, or one of
// the kind that says no more than the status of an http::Error. malformed: the kind for an
// InputError. An error that is not known here is logged, and is the server's.
Problem problem_of(const std::exception& error,
                   ProblemKind malformed = ProblemKind::kMalformedRequest);

// A problem that is thrown anywhere between a request and its response.
class Refusal : public std::exception {
 public:
  explicit Refusal(Problem problem) : problem_(std::move(problem)) {}
  Refusal(ProblemKind kind, std::string detail)
      : problem_{.kind = kind, .detail = std::move(detail)} {}

  const char* what() const noexcept override { return problem_.detail.c_str(); }
  const Problem& problem() const { return problem_; }

 private:
  Problem problem_;
};

}  // namespace blindfuse
