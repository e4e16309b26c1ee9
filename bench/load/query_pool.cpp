#include "bench/load/query_pool.h"

#include <algorithm>

#include "client/query_preparation.h"
#include "src/base/base64.h"
#include "src/protocol/bucket_choice.h"

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

QueryPool::QueryPool(DatabaseDescription database, KeySource& keys, const Options& options,
                     const Target& target)
    : database_(std::move(database)) {
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
    PooledQuery& query = queries[i];
    query.asked = keys.draw(layout, random);
    const auto bytes = std::span(packed).subspan(i * layout.query_bytes(), layout.query_bytes());
    query.secret = encrypt(std::move(prepared[i]), query, bytes).take();
  }
  return queries;
}

DecodingSecret QueryPool::encrypt(PreparedQuery prepared, PooledQuery& query,
                                  std::span<uint8_t> bytes) const {
  const Layout& layout = database_.layout();
  if (layout.batch) {
    const KeyHash hash = database_.hash(query.asked.key);
    const uint32_t bucket = BucketChooser(layout.bucket_count())(hash)[0];
    query.place = database_.place(hash, bucket);
    std::vector<BucketRows> buckets(layout.bucket_count());
    buckets[bucket] = {.rows = query.place.rows, .asks = 1};
    return std::move(prepared).encrypt(buckets, layout, bytes);
  }
  query.place = database_.place(query.asked.key);
  return std::move(prepared).encrypt(std::span(query.place.rows).first(query.place.row_count),
                                     query.place.shard, layout, bytes);
}

}  // namespace blindfuse::load
