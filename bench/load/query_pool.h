// Requests made ahead, in the form in which they are sent, so that making them takes no time while
// they are sent; the keys they ask for; and the database that they are for.
//
// Every query has a secret of its own, from the operating system. But when all have been sent they
// are sent again, which no client ever does (docs/PROTOCOL.md, section 9): here it is for measuring
// only, because a query takes a second or so to make and is answered in milliseconds. The same
// bytes again are not a second equation in the secret, so the server learns nothing more about it;
// it does learn that the same key was asked for again, which is nothing to hide when the keys are a
// benchmark's.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "bench/load/options.h"
#include "client/database_description.h"
#include "client/hint_cache.h"
#include "client/prepared_query.h"
#include "client/remote_database.h"
#include "client/secret.h"

namespace blindfuse::load {

struct KnownKey {
  // True if this is the right answer of the database for the key.
  bool is_met_by(const std::optional<std::string>& found) const {
    return found.has_value() == is_there && (!value || found == value);
  }

  std::string key;
  bool is_there = true;
  std::optional<std::string> value;  // where it is known
};

class KeySource {
 public:
  // Reads options.expect_file. Throws InputError when it cannot be read, or is not what it should
  // be.
  explicit KeySource(const Options& options);

  // Returns one of the file's keys, in turn; without a file a random one.
  KnownKey draw(const Layout& layout);

 private:
  std::vector<KnownKey> known_;
  size_t next_ = 0;
  std::mt19937_64 random_;
};

// The database at a URL, as a client has it: its current epoch, with all hints on disk.
class ServedDatabase {
 public:
  // Hints go to a folder below options.cache.
  explicit ServedDatabase(const Options& options);

  // Brings the hints to the server's current epoch. Those of other epochs may be gone then. Throws
  // the errors of HintCache::sync.
  DatabaseDescription sync();

  // The parts of the hint with which a shard's answers are decoded, of an epoch that sync()
  // returned.
  std::vector<uint8_t> hint(const DatabaseDescription& database, uint32_t shard) const {
    return hints_.read_hint(database, shard);
  }

 private:
  RemoteDatabase remote_;
  HintCache hints_;
};

struct PooledKey {
  KnownKey known;
  KeyPlace place;
};

struct PooledRequest {
  std::string bytes;            // head and body
  std::vector<PooledKey> keys;  // that its query asks for: one, if requests are not for several
  uint64_t left_out = 0;        // keys that found no bucket
  SecretBuffer<uint32_t> secret;
};

class QueryPool {
 public:
  // options.pool queries of the database's epoch, each for as many keys as the database allows.
  // Throws InputError for a key that this database cannot have.
  QueryPool(DatabaseDescription database, KeySource& keys, const Options& options);

  const DatabaseDescription& database() const { return database_; }
  uint32_t keys_per_query() const;
  size_t size() const { return requests_.size(); }
  const PooledRequest& operator[](size_t i) const { return requests_[i]; }

 private:
  DecodingSecret encrypt_for_key(PreparedQuery prepared, KnownKey key, PooledRequest& request,
                                 std::span<uint8_t> bytes) const;
  // A key that is drawn twice is asked for once.
  DecodingSecret encrypt_for_buckets(PreparedQuery prepared, std::vector<KnownKey> keys,
                                     PooledRequest& request, std::span<uint8_t> bytes) const;

  DatabaseDescription database_;
  std::vector<PooledRequest> requests_;
};

}  // namespace blindfuse::load
