#include "bench/load/query_pool.h"

#include <blindfuse/errors.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <thread>
#include <utility>

#include "client/batch_plan.h"
#include "client/cache_folder.h"
#include "client/http_transport.h"
#include "client/prepared_query.h"
#include "client/ring_query.h"
#include "client/url.h"
#include "src/base/errors.h"
#include "src/system/file.h"

namespace blindfuse::load {
namespace {

constexpr uint64_t kFileBytesMax = uint64_t{4} << 30;
constexpr uint64_t kPassBytes = uint64_t{256} << 20;  // of queries that are not packed yet
constexpr int kAttempts = 20;

std::unique_ptr<Transport> transport(const Options& options) {
  HttpOptions http;
  http.timeout = std::chrono::seconds(options.timeout_s);
  if (!options.ca_file.empty()) http.ca_file = options.ca_file;
  if (const std::string key = api_key_of(options); !key.empty()) http.api_key = key;
  return std::make_unique<HttpTransport>(parse_url(options.url), http);
}

// All requests of an epoch have the same head.
std::string head(const DatabaseDescription& database, const Options& options) {
  const Url url = parse_url(options.url);
  std::string host = url.host.find(':') == std::string::npos ? url.host : "[" + url.host + "]";
  if (url.port != (url.secure ? 443 : 80)) host += ":" + std::to_string(url.port);
  const std::string api_key = api_key_of(options);
  return "POST " + url.prefix + "/v1/epochs/" + database.epoch() + "/queries HTTP/1.1\r\n" +
         "Host: " + host + "\r\nUser-Agent: blindfuse-bench-load\r\n" +
         (api_key.empty() ? "" : "Authorization: Bearer " + api_key + "\r\n") +
         "Accept-Encoding: identity\r\nContent-Type: application/octet-stream\r\n" +
         "Content-Length: " + std::to_string(database.layout().query_bytes()) + "\r\n\r\n";
}

}  // namespace

KeySource::KeySource(const Options& options) {
  if (options.expect_file.empty()) return;
  const std::string text = read_file(options.expect_file, kFileBytesMax);
  std::string_view rest = text;
  for (size_t number = 1; !rest.empty(); ++number) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    const size_t tab = line.find('\t');
    if (tab == std::string_view::npos) {
      throw InputError(options.expect_file.string() + ":" + std::to_string(number) +
                       ": no tab; expected KEY<tab>VALUE");
    }
    known_.push_back({std::string(line.substr(0, tab)), true, std::string(line.substr(tab + 1))});
  }
  if (known_.empty()) throw InputError(options.expect_file.string() + " has no keys");
}

KnownKey KeySource::draw(const Layout& layout) {
  if (!known_.empty()) return known_[next_++ % known_.size()];
  if (layout.kind == DatabaseKind::kIndex) {
    return {std::to_string(random_() % layout.key_count), true, std::nullopt};
  }
  std::string key = "blindfuse-bench-load/not-there/";
  for (int i = 0; i < 2; ++i) key += std::to_string(random_());
  return {std::move(key), false, std::nullopt};
}

ServedDatabase::ServedDatabase(const Options& options)
    : remote_(transport(options), parse_url(options.url).text(),
              std::chrono::seconds(options.timeout_s)),
      hints_(database_folder(options.cache, remote_.address())) {}

DatabaseDescription ServedDatabase::sync() {
  for (int attempt = 1;; ++attempt) {
    try {
      SyncResult result;
      return hints_.sync(remote_, remote_.fetch_manifest(), false, {}, result);
    } catch (const EpochGoneError&) {
      // The server went on to another epoch after it sent its manifest.
      if (attempt == kAttempts) throw;
    } catch (const ServerBusyError&) {
      if (attempt == kAttempts) throw;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
  }
}

uint32_t QueryPool::keys_per_query() const {
  return database_.layout().batch ? database_.layout().batch->keys_per_request : 1;
}

QueryPool::QueryPool(DatabaseDescription database, KeySource& keys, const Options& options)
    : database_(std::move(database)) {
  const Layout& layout = database_.layout();
  const std::string first_bytes = head(database_, options);
  const uint64_t key_bytes = layout.query_bytes() - layout.query_words_bytes();
  const size_t per_pass =
      std::max<uint64_t>(1, kPassBytes / (uint64_t{4} * layout.query_word_count() + key_bytes));
  std::vector<uint8_t> packed(layout.query_bytes());
  while (requests_.size() < options.pool) {
    const size_t count = std::min(options.pool - requests_.size(), per_pass);
    for (PreparedQuery& query :
         prepare_queries_for(database_.manifest(), count, 0, fill_from_system)) {
      std::vector<KnownKey> drawn;
      while (drawn.size() < keys_per_query()) drawn.push_back(keys.draw(layout));
      PooledRequest& request = requests_.emplace_back();
      request.secret =
          (layout.batch
               ? encrypt_for_buckets(std::move(query), std::move(drawn), request, packed)
               : encrypt_for_key(std::move(query), std::move(drawn.front()), request, packed))
              .take();
      request.bytes = first_bytes + std::string(packed.begin(), packed.end());
    }
  }
}

DecodingSecret QueryPool::encrypt_for_key(PreparedQuery prepared, KnownKey key,
                                          PooledRequest& request, std::span<uint8_t> bytes) const {
  const KeyPlace place = database_.place(key.key);
  request.keys.push_back({std::move(key), place});
  return std::move(prepared).encrypt({&place, 1}, database_.layout(), bytes);
}

DecodingSecret QueryPool::encrypt_for_buckets(PreparedQuery prepared, std::vector<KnownKey> keys,
                                              PooledRequest& request,
                                              std::span<uint8_t> bytes) const {
  const Layout& layout = database_.layout();
  SecretBuffer<KeyHash> hashes(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) hashes[i] = database_.hash(keys[i].key);
  const BatchPlan plan(std::move(hashes), *layout.batch);
  invariant(plan.request_count() == 1, "one request is enough for the keys");
  SecretBuffer<KeyPlace> places(layout.bucket_count());
  SecretBuffer<uint32_t> key_of(layout.bucket_count());
  place_in_buckets(database_, plan, 0, places.span(), key_of.span());
  for (uint32_t key = 0; key < keys.size(); ++key) {
    if (plan.first_of(key) == key && plan.request_of(key) == plan.request_count())
      ++request.left_out;
  }
  for (uint32_t bucket = 0; bucket < places.size(); ++bucket) {
    const uint32_t key = key_of[bucket];
    if (key == plan.key_count()) continue;
    request.keys.push_back({std::move(keys[key]), places[bucket]});
  }
  return std::move(prepared).encrypt(places.span(), layout, bytes);
}

}  // namespace blindfuse::load
