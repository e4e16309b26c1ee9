#include "host/server/routes/query_route.h"

#include <algorithm>
#include <optional>

#include "host/server/routes/problem.h"
#include "src/arithmetic/bit_sequence.h"
#include "src/arithmetic/ring/packing_keys.h"
#include "src/base/ascii.h"
#include "src/base/errors.h"

namespace blindfuse {
namespace {

// The time after which a client may try again: the queue empties in a few batches, each well below
// a second.
constexpr std::chrono::seconds kRetryAfter{1};

// A media type without its parameters, in lower case.
std::string media_type_of(std::string text) {
  text.erase(std::min(text.find(';'), text.size()));
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.pop_back();
  std::ranges::transform(text, text.begin(), lower_ascii);
  return text;
}

BodyFormat format_of(const http::RequestHead& head) {
  const std::string media_type = media_type_of(std::string(head.header("Content-Type")));
  const std::string_view content_encoding = head.header("Content-Encoding");
  for (const BodyFormat format : {BodyFormat::kBinary, BodyFormat::kJson}) {
    if (media_type != content_type_of(format)) continue;
    // Queries look random; compressing them gains nothing, and unpacking them would hide their
    // size.
    if (content_encoding.empty() || equal_ignoring_case(content_encoding, "identity"))
      return format;
    throw Refusal(Problem{.kind = ProblemKind::kUnsupportedMediaType,
                          .detail = "queries are sent without Content-Encoding",
                          .headers = {{"Accept-Encoding", "identity"}}});
  }
  throw Refusal(ProblemKind::kUnsupportedMediaType,
                "queries are application/octet-stream or application/json");
}

// Of a query, what comes after its packing key.
void check_second_level_of(std::span<const uint8_t> rest, const Layout& layout) {
  if (layout.second->key_order > 0) {
    try {
      check_packing_key(rest.first(ring::kKeyBytes));
    } catch (const InputError& error) {
      throw InputError(std::string("the short key: ") + error.what());
    }
    rest = rest.subspan(ring::kKeyBytes);
  }
  if (!is_bit_sequence(rest, layout.second_row_count(), layout.second->query_bits)) {
    throw InputError("the padding bits of the second-level query are not zero");
  }
}

// Throws InputError, naming the query.
void check_keys_of(std::span<const uint8_t> queries, const Layout& layout) {
  const uint64_t words_bytes = layout.query_words_bytes();
  for (size_t at = 0; at < queries.size(); at += layout.query_bytes()) {
    try {
      const auto keys = queries.subspan(at, layout.query_bytes()).subspan(words_bytes);
      check_packing_key(keys.first(ring::kKeyBytes));
      if (layout.second) check_second_level_of(keys.subspan(ring::kKeyBytes), layout);
    } catch (const InputError& error) {
      throw InputError("query " + std::to_string(at / layout.query_bytes() + 1) + ": " +
                       error.what());
    }
  }
}

Refusal refusal_for_now(ProblemKind kind, const char* detail,
                        std::chrono::seconds retry_after = kRetryAfter) {
  return Refusal(Problem{.kind = kind,
                         .detail = detail,
                         .headers = {{"Retry-After", std::to_string(retry_after.count())}}});
}

// What `ask` gives, a scheduler's errors as refusals.
template <typename Ask>
auto with_refusals(const Ask& ask) {
  try {
    return ask();
  } catch (const QueueFull& error) {
    throw refusal_for_now(ProblemKind::kBusy, error.what());
  } catch (const OverQuota& error) {
    throw refusal_for_now(ProblemKind::kOverQuota, error.what(), error.retry_after());
  } catch (const SchedulerStopped& error) {
    throw refusal_for_now(ProblemKind::kStopping, error.what());
  }
}

}  // namespace

QueryBodyLimits query_limits(const ServingEpoch& epoch, const ApiOptions& options) {
  const Layout& layout = epoch.layout();
  const uint64_t usual = layout.batch ? 1
                                      : std::min<uint64_t>(kQueriesPerRequestUsual,
                                                           epoch.scheduler().limits().queue_max);
  return {layout.query_bytes(), options.queries_per_request_max.value_or(usual)};
}

QueryRequest check_query_head(const ServingEpoch& epoch, const http::RequestHead& head,
                              const ApiOptions& options) {
  const QueryRequest query{epoch.database().epoch, format_of(head), query_limits(epoch, options),
                           epoch.layout().response_bytes()};
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
    } catch (const InputError& error) {
      throw Refusal(ProblemKind::kMalformedQueries, error.what());
    }
  }
  return query;
}

std::span<const uint8_t> read_queries(const ServingEpoch& epoch, const QueryRequest& query,
                                      std::span<char> body) {
  try {
    const auto queries = read_query_body(query.format, body, query.limits);
    const Layout& layout = epoch.layout();
    if (layout.mode() == Mode::kPacked) check_keys_of(queries, layout);
    return queries;
  } catch (const InputError& error) {
    throw Refusal(ProblemKind::kMalformedQueries, error.what());
  }
}

void check_queue(const ServingEpoch& epoch, const std::string& client, size_t query_count) {
  with_refusals([&] { epoch.scheduler().check_room(query_count, client); });
}

std::shared_ptr<PendingAnswer> ask_queries(const ServingEpoch& epoch, const std::string& client,
                                           std::span<const uint8_t> queries,
                                           PendingAnswer::Clock::time_point deadline,
                                           std::function<void()> on_done) {
  return with_refusals(
      [&] { return epoch.scheduler().ask(queries, deadline, std::move(on_done), client); });
}

http::Response answer_queries(const ServingEpoch& epoch, const QueryRequest& query,
                              PendingAnswer& answer) {
  switch (answer.outcome()) {
    case PendingAnswer::Outcome::kAnswered:
      break;
    case PendingAnswer::Outcome::kEngineFailed:
      throw refusal_for_now(ProblemKind::kEngineFailed,
                            "the engine failed in the batch of these queries");
    case PendingAnswer::Outcome::kExpired:
      throw timed_out_in_queue();
  }
  http::Response response{.text = write_response_body(query.format, std::move(answer.responses()),
                                                      epoch.layout().response_bytes())};
  response.set_header("Content-Type", std::string(content_type_of(query.format)));
  response.set_header("Cache-Control", "no-store");
  return response;
}

Refusal timed_out_in_queue() {
  return refusal_for_now(ProblemKind::kTimedOut,
                         "the queries waited too long for the engine; try again");
}

Refusal queries_failed() {
  return refusal_for_now(ProblemKind::kEngineFailed,
                         "the server could not take the queries; try again");
}

}  // namespace blindfuse
