// Requests made ahead, in the form in which they are sent, so that making them takes no time while
// they are sent.
//
// Every query has a secret of its own, from the operating system. But when all have been sent they
// are sent again, which no client ever does (docs/PROTOCOL.md, section 9): here it is for measuring
// only, because a query takes a second or so to make and is answered in milliseconds. The same
// bytes again are not a second equation in the secret, so the server learns nothing more about it;
// it does learn that the same key was asked for again, which is nothing to hide when the keys are a
// benchmark's.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/load/key_source.h"
#include "bench/load/target.h"
#include "client/database_description.h"
#include "client/prepared_query.h"
#include "client/secret.h"

namespace blindfuse::load {

struct PooledKey {
  KnownKey known;
  KeyPlace place;
};

struct PooledQuery {
  std::vector<PooledKey> keys;  // that it asks for: one, if requests are not for several
  uint64_t left_out = 0;        // keys that found no bucket
  SecretBuffer<uint32_t> secret;
};

struct PooledRequest {
  std::string bytes;  // head and body
  std::vector<PooledQuery> queries;
  uint64_t key_count = 0;  // of all its queries
  uint64_t left_out = 0;
};

// The keys of each query: options.keys_per_request, or as many as the database allows. Throws
// UsageError for more than that.
uint32_t keys_per_query(const Layout& layout, const Options& options);

class QueryPool {
 public:
  // options.pool queries of the database's epoch, rounded down to whole requests. Throws InputError
  // for a key that this database cannot have, and UsageError as keys_per_query() does.
  QueryPool(DatabaseDescription database, KeySource& keys, const Options& options,
            const Target& target);

  const DatabaseDescription& database() const { return database_; }
  uint32_t keys_per_query() const { return keys_per_query_; }
  size_t size() const { return requests_.size(); }
  const PooledRequest& operator[](size_t i) const { return requests_[i]; }

  // The number of requests that have been taken before. The next to send is that number modulo
  // size(). Any thread may call it.
  size_t take() const { return taken_++; }

 private:
  // Packed, one after another.
  std::vector<PooledQuery> make_queries(size_t count, KeySource& keys, std::mt19937_64& random,
                                        std::vector<uint8_t>& packed, unsigned threads);
  DecodingSecret encrypt_for_key(PreparedQuery prepared, KnownKey key, PooledQuery& query,
                                 std::span<uint8_t> bytes) const;
  // A key that is drawn twice is asked for once.
  DecodingSecret encrypt_for_buckets(PreparedQuery prepared, std::vector<KnownKey> keys,
                                     PooledQuery& query, std::span<uint8_t> bytes) const;

  DatabaseDescription database_;
  uint32_t keys_per_query_;
  std::vector<PooledRequest> requests_;
  mutable std::atomic<size_t> taken_ = 0;
};

}  // namespace blindfuse::load
