#include "host/server/query_route.h"

#include <algorithm>
#include <optional>

#include "host/server/problem.h"
#include "src/errors.h"

namespace blindfuse {
namespace {

// Seconds after which a client may try again: the queue empties in a few batches, each well below a
// second.
constexpr const char* kRetryAfterSeconds = "1";

// A media type without its parameters, in lower case.
std::string media_type_of(std::string text) {
  text.erase(std::min(text.find(';'), text.size()));
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.pop_back();
  std::ranges::transform(text, text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return text;
}

BodyFormat format_of(const std::string& content_type, const std::string& content_encoding) {
  const std::string media_type = media_type_of(content_type);
  for (const BodyFormat format : {BodyFormat::kBinary, BodyFormat::kJson}) {
    if (media_type != content_type_of(format)) continue;
    // Queries look random; compressing them gains nothing, and unpacking them would hide their
    // size.
    if (content_encoding.empty() || content_encoding == "identity") return format;
    throw Refusal(ProblemKind::kUnsupportedMediaType, "queries are sent without Content-Encoding");
  }
  throw Refusal(ProblemKind::kUnsupportedMediaType,
                "queries are application/octet-stream or application/json");
}

[[noreturn]] void refuse_for_now(ProblemKind kind, const char* detail) {
  throw Refusal(
      Problem{.kind = kind, .detail = detail, .headers = {{"Retry-After", kRetryAfterSeconds}}});
}

std::string ask_engine(const ServingEpoch& epoch, const std::string& queries) {
  try {
    return epoch.scheduler().answer(
        {reinterpret_cast<const uint8_t*>(queries.data()), queries.size()});
  } catch (const QueueFull& error) {
    refuse_for_now(ProblemKind::kBusy, error.what());
  } catch (const SchedulerStopped& error) {
    refuse_for_now(ProblemKind::kStopping, error.what());
  } catch (const EngineTrouble& error) {
    refuse_for_now(ProblemKind::kEngineFailed, error.what());
  }
}

}  // namespace

QueryBodyLimits query_limits(const ServingEpoch& epoch, uint64_t queries_per_request_max) {
  return {epoch.layout().query_bytes(), queries_per_request_max};
}

QueryRequest check_query_head(std::shared_ptr<const ServingEpoch> epoch, const RequestHead& head,
                              const std::string& content_type, const std::string& content_encoding,
                              uint64_t queries_per_request_max) {
  QueryRequest query{std::move(epoch), format_of(content_type, content_encoding), {}};
  query.limits = query_limits(*query.epoch, queries_per_request_max);
  if (head.chunked) return query;
  if (!head.content_length) {
    throw Refusal(ProblemKind::kLengthRequired,
                  "a request with queries has Content-Length or Transfer-Encoding: chunked");
  }
  const uint64_t most = query.limits.body_bytes_max(query.format);
  if (*head.content_length > most) {
    throw Refusal(ProblemKind::kBodyTooLarge,
                  "the body has " + std::to_string(*head.content_length) + " bytes; at most " +
                      std::to_string(most) + " for " +
                      std::to_string(query.limits.query_count_max) + " queries");
  }
  if (query.format == BodyFormat::kBinary) {
    try {
      check_binary_length(*head.content_length, query.limits);
    } catch (const BadInput& error) {
      throw Refusal(ProblemKind::kMalformedQueries, error.what());
    }
  }
  return query;
}

void answer_queries(const QueryRequest& query, std::string body, httplib::Response& response) {
  std::string queries;
  try {
    queries = parse_query_body(query.format, std::move(body), query.limits);
  } catch (const BadInput& error) {
    throw Refusal(ProblemKind::kMalformedQueries, error.what());
  }
  response.body = write_response_body(query.format, ask_engine(*query.epoch, queries),
                                      query.epoch->layout().response_bytes());
  response.status = 200;
  response.set_header("Content-Type", std::string(content_type_of(query.format)));
  response.set_header("Cache-Control", "no-store");
}

}  // namespace blindfuse
