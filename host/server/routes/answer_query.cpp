#include "host/server/routes/answer_query.h"

#include <algorithm>
#include <functional>
#include <span>
#include <utility>

#include "host/server/http/listening_socket.h"
#include "host/server/routes/problem.h"
#include "src/arithmetic/bit_sequence.h"
#include "src/arithmetic/ring/packing_key_format.h"
#include "src/base/errors.h"
#include "src/base/utf8.h"

namespace blindfuse {
namespace {

BodyFormat format_of(const http::RequestHead& head) {
  const std::string_view content_type = head.header("Content-Type");
  const std::string_view media_type = http::trimmed(content_type.substr(0, content_type.find(';')));
  const std::string_view content_encoding = head.header("Content-Encoding");
  for (const BodyFormat format : {BodyFormat::kBinary, BodyFormat::kJson}) {
    if (!equal_ignoring_case(media_type, content_type_of(format))) continue;
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

// Checks everything that can be checked before the body is read or memory is allocated for it.
void check_length(const http::RequestHead& head, BodyFormat format, const QueryBodyLimits& limits) {
  if (head.chunked) return;
  if (!head.content_length) {
    throw Refusal(ProblemKind::kLengthRequired,
                  "a request with queries has Content-Length or Transfer-Encoding: chunked");
  }
  const uint64_t most = limits.body_bytes_max(format);
  if (*head.content_length > most) {
    throw Refusal(ProblemKind::kBodyTooLarge,
                  "the body has " + std::to_string(*head.content_length) + " bytes; at most " +
                      std::to_string(most) + " for " + std::to_string(limits.query_count_max) +
                      " queries");
  }
  if (format == BodyFormat::kBinary) check_binary_length(*head.content_length, limits);
}

// Checks the part of a query that comes after its packing key.
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

// The name that stands for the client in the queue: the name of its API key, or else the network of
// its address. Clients without an address, as on a UNIX socket, are one client together.
std::string sender_of(const http::Connection& client, const std::string& key_name,
                      const std::string& address_header) {
  if (!key_name.empty()) return key_name;
  // A client can send all addresses except the last itself, perhaps in a header of its own.
  const auto& headers = client.head().headers;
  const auto sent = std::find_if(headers.rbegin(), headers.rend(), [&](const auto& header) {
    return equal_ignoring_case(header.first, address_header);
  });
  if (sent != headers.rend()) {
    std::string_view address = sent->second;
    address.remove_prefix(std::min(address.find_last_of(", \t") + 1, address.size()));
    std::string network = http::client_network(address);
    if (!network.empty()) return network;
  }
  std::string network = http::client_network(client.peer());
  return network.empty() ? client.peer() : network;
}

Refusal timed_out() {
  return Refusal(
      for_now(ProblemKind::kTimedOut, "the queries waited too long for the engine; try again"));
}

}  // namespace

http::Awaitable<http::Response> answer_query(ApiContext& context, http::Connection& client,
                                             std::shared_ptr<const ServingEpoch> epoch,
                                             RequestRecord& record) {
  const BodyFormat format = format_of(client.head());
  const QueryBodyLimits limits = query_limits(*epoch, context.options);
  check_length(client.head(), format, limits);
  // A body may take a long time to arrive, and would keep a replaced epoch in memory.
  epoch.reset();
  const std::span<char> body =
      co_await client.read_body(limits.body_bytes_max(format), context.request_bytes_max());
  // The number is a guess, in case that they are refused.
  record.query_count = limits.query_count(format, body.size());
  // The epoch may have been retired while the body arrived.
  epoch = find_epoch(context.epochs, record.epoch);
  const auto queries = read_query_body(format, body, limits);
  record.query_count = queries.size() / limits.query_bytes;
  const Layout& layout = epoch->layout();
  if (layout.mode() == Mode::kPacked) check_keys_of(queries, layout);

  BatchScheduler& scheduler = epoch->scheduler();
  const std::string sender =
      sender_of(client, record.key_name, context.options.client_address_header);
  // No connection is ended for a request that the queue refuses.
  const std::function<void()> check_room = [&] {
    scheduler.check_room(record.query_count, sender);
  };
  co_await client.reserve_response(
      response_memory_bytes(format, record.query_count, layout.response_bytes()),
      context.response_bytes_max(), check_room);
  const auto deadline = http::Clock::now() + context.options.answer_timeout;
  const auto answer = scheduler.ask(queries, deadline, client.waker(), sender);
  client.release_body();

  const std::function<bool()> is_done = [&] { return answer->is_done(); };
  try {
    const bool in_time = co_await client.wait_until(is_done, deadline);
    if (!in_time) {
      if (answer->drop()) throw timed_out();
      // The engine has begun with these queries.
      co_await client.wait_until(is_done, http::Clock::time_point::max());
    }
  } catch (const http::ClientLeft&) {
    answer->abandon();
    throw;
  }
  if (answer->outcome() == PendingAnswer::Outcome::kExpired) throw timed_out();
  if (answer->outcome() == PendingAnswer::Outcome::kEngineFailed) {
    throw Refusal(
        for_now(ProblemKind::kEngineFailed, "the engine failed in the batch of these queries"));
  }
  http::Response response{
      .text = write_response_body(format, std::move(answer->responses()), layout.response_bytes())};
  response.set_header("Content-Type", std::string(content_type_of(format)));
  response.set_header("Cache-Control", "no-store");
  co_return response;
}

}  // namespace blindfuse
