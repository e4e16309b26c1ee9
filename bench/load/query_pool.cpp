#include "bench/load/query_pool.h"

#include <algorithm>
#include <utility>

#include "client/batch_plan.h"
#include "client/ring_query.h"
#include "src/base/base64.h"
#include "src/base/errors.h"

namespace blindfuse::load {
namespace {

constexpr uint64_t kPassBytes = uint64_t{256} << 20;  // of queries that are not packed yet

std::string json_body(std::span<const uint8_t> packed, size_t query_bytes) {
  std::string body = R"({"queries":[)";
  for (size_t at = 0; at < packed.size(); at += query_bytes) {
    body += (at == 0 ? "\"" : ",\"") + encode_base64(packed.subspan(at, query_bytes)) + "\"";
  }
  return body + "]}";
}

// `first_lines` are the same for all requests.
std::string request_bytes(const std::string& first_lines, BodyFormat format,
                          std::span<const uint8_t> packed, size_t query_bytes) {
  const bool is_json = format == BodyFormat::kJson;
  const std::string body =
      is_json ? json_body(packed, query_bytes) : std::string(packed.begin(), packed.end());
  return first_lines +
         "Content-Type: " + (is_json ? "application/json" : "application/octet-stream") +
         "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

}  // namespace

uint32_t keys_per_query(const Layout& layout, const Options& options) {
  const uint32_t most = layout.batch ? layout.batch->keys_per_request : 1;
  const uint32_t wanted = options.keys_per_request.value_or(most);
  if (wanted <= most) return wanted;
  const std::string option = "--keys-per-request " + std::to_string(wanted);
  throw UsageError(layout.batch
                       ? option + " is too much: a request to this database is for up to " +
                             std::to_string(most) + " keys"
                       : option +
                             " is for a database with requests for several keys (blindfuse build " +
                             "--keys-per-request), and this one is not; leave it out");
}

QueryPool::QueryPool(DatabaseDescription database, KeySource& keys, const Options& options,
                     const Target& target)
    : database_(std::move(database)),
      keys_per_query_(load::keys_per_query(database_.layout(), options)) {
  const std::string api_key = api_key_of(options);
  const std::string first_lines =
      "POST " + target.url.prefix + "/v1/epochs/" + database_.epoch() + "/queries HTTP/1.1\r\n" +
      "Host: " + target.host_and_port() + "\r\nUser-Agent: blindfuse-bench-load\r\n" +
      (api_key.empty() ? "" : "Authorization: Bearer " + api_key + "\r\n") +
      "Accept-Encoding: identity\r\n";
  const Layout& layout = database_.layout();
  const size_t per_request = options.queries_per_request;
  const uint64_t key_bytes = layout.query_bytes() - layout.query_words_bytes();
  const size_t per_pass = std::max<uint64_t>(
      1, kPassBytes / ((uint64_t{4} * layout.query_word_count() + key_bytes) * per_request));
  std::mt19937_64 random(options.seed);
  size_t left = options.pool / per_request;
  while (left > 0) {
    const size_t count = std::min(left, per_pass);
    std::vector<uint8_t> packed;
    std::vector<PooledQuery> queries =
        make_queries(count * per_request, keys, random, packed, options.threads);
    const size_t bytes = per_request * layout.query_bytes();
    for (size_t i = 0; i < count; ++i) {
      PooledRequest& request = requests_.emplace_back();
      request.bytes =
          request_bytes(first_lines, options.body_format(),
                        std::span(packed).subspan(i * bytes, bytes), layout.query_bytes());
      const auto first = queries.begin() + static_cast<std::ptrdiff_t>(i * per_request);
      std::move(first, first + static_cast<std::ptrdiff_t>(per_request),
                std::back_inserter(request.queries));
      for (const PooledQuery& query : request.queries) {
        request.key_count += query.keys.size();
        request.left_out += query.left_out;
      }
    }
    left -= count;
  }
}

std::vector<PooledQuery> QueryPool::make_queries(size_t count, KeySource& keys,
                                                 std::mt19937_64& random,
                                                 std::vector<uint8_t>& packed, unsigned threads) {
  const Layout& layout = database_.layout();
  std::vector<PreparedQuery> prepared =
      prepare_queries_for(database_.manifest(), count, threads, fill_from_system);
  packed.resize(count * layout.query_bytes());
  std::vector<PooledQuery> queries(count);
  for (size_t i = 0; i < count; ++i) {
    std::vector<KnownKey> drawn;
    while (drawn.size() < keys_per_query_) drawn.push_back(keys.draw(layout, random));
    const auto bytes = std::span(packed).subspan(i * layout.query_bytes(), layout.query_bytes());
    PooledQuery& query = queries[i];
    query.secret =
        (layout.batch
             ? encrypt_for_buckets(std::move(prepared[i]), std::move(drawn), query, bytes)
             : encrypt_for_key(std::move(prepared[i]), std::move(drawn.front()), query, bytes))
            .take();
  }
  return queries;
}

DecodingSecret QueryPool::encrypt_for_key(PreparedQuery prepared, KnownKey key, PooledQuery& query,
                                          std::span<uint8_t> bytes) const {
  const KeyPlace place = database_.place(key.key);
  query.keys.push_back({std::move(key), place});
  return std::move(prepared).encrypt({&place, 1}, database_.layout(), bytes);
}

DecodingSecret QueryPool::encrypt_for_buckets(PreparedQuery prepared, std::vector<KnownKey> keys,
                                              PooledQuery& query, std::span<uint8_t> bytes) const {
  const Layout& layout = database_.layout();
  SecretBuffer<KeyHash> hashes(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) hashes[i] = database_.hash(keys[i].key);
  const BatchPlan plan(std::move(hashes), *layout.batch);
  invariant(plan.request_count() == 1, "one request is enough for the keys");
  SecretBuffer<KeyPlace> places(layout.bucket_count());
  SecretBuffer<uint32_t> key_of(layout.bucket_count());
  place_in_buckets(database_, plan, 0, places.span(), key_of.span());
  for (uint32_t key = 0; key < keys.size(); ++key) {
    if (plan.first_of(key) == key && plan.request_of(key) == plan.request_count()) ++query.left_out;
  }
  for (uint32_t bucket = 0; bucket < places.size(); ++bucket) {
    const uint32_t key = key_of[bucket];
    if (key == plan.key_count()) continue;
    query.keys.push_back({std::move(keys[key]), places[bucket]});
  }
  return std::move(prepared).encrypt(places.span(), layout, bytes);
}

}  // namespace blindfuse::load
