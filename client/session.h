// Look-ups in one database, for one thread at a time: the part of the client library
// (<blindfuse/client.h>) that does not depend on the transport.
#pragma once

#include <blindfuse/client_options.h>
#include <blindfuse/results.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client/checked_hints.h"
#include "client/database_description.h"
#include "client/hint_cache.h"
#include "client/manifest_guard.h"
#include "client/prepared_query.h"
#include "client/query_preparation.h"
#include "client/remote_database.h"
#include "src/system/random.h"

namespace blindfuse {

// Errors: <blindfuse/errors.h>. After any of them the session can be used again.
//
// get, get_many and look_up first fetch the hints if there are none yet, or if the server no longer
// serves their epoch. Every query consumes a prepared one, whether it is answered or not. A request
// is repeated with new queries: a few times if the server is busy, once if it closed a connection
// that was kept. If the epoch changes during a look-up, all its keys are asked for again, once. The
// server's view never depends on a key: all hints of an epoch are checked before the first query to
// it, all requests of a look-up are sent before the first answer is decoded, the connection is
// closed between the two, and decoding does the same work for every key (CheckedHints). So a
// session is for a keyword database or for an index database, whichever it saw first: a key of one
// may be invalid in the other, and whether a query follows would reveal this.
//
// If requests of the database are for K keys, a look-up of n keys makes ceil(n / K) requests of one
// query each, whatever the keys are (BatchPlan). All buckets of a query are decoded in the same
// way, with or without a key. A request that is repeated asks for the same keys. A key that found
// no bucket in any of the requests is not asked for (Answer::asked).
class Session {
 public:
  // Checks that the server answers with a manifest, and that ManifestGuard accepts it. The same
  // check comes first for every later manifest. `address` names the server in messages and in the
  // cache, whose files are at `files`. Secrets are drawn from `random`.
  Session(std::unique_ptr<Transport> transport, const std::string& address, ClientOptions options,
          RandomSource random = fill_from_system, HintFiles files = HintFiles::kOnDisk,
          Deadline::Clock clock = std::chrono::steady_clock::now);

  // The current call. All requests to the session within one Deadline::Call are one call. Otherwise
  // each function is a call.
  Deadline& deadline() { return remote_.deadline(); }

  // As of the last manifest that was accepted.
  std::shared_ptr<const SignerStatus> signer() const { return guard_.status(); }
  ManifestGuard& guard() { return guard_; }
  const TransferStats& transfers() const { return remote_.transfers(); }

  // Brings the hints up to the server's current epoch. With `verify`, first checks every cached
  // hint.
  SyncResult sync(bool verify = false);

  // Makes `count` more queries ahead, in one pass. Each takes 4 R bytes of memory for each bucket,
  // and 24 KiB more if responses are packed; with two levels also 4 bytes a group, and 24 KiB with
  // a short key.
  void prepare(size_t count);
  size_t prepared_count() const { return prepared_.size(); }
  // Takes queries that were made ahead elsewhere, in this many seconds each, for database(), in the
  // sense of PreparedQuery::is_for.
  void add_prepared(std::vector<PreparedQuery> queries, double seconds);

  // Throws InputError if one of the keys is not a valid key of this database.
  void check_keys(std::span<const std::string> keys);

  // The value of a key: a byte string, or a decimal number in an index database.
  std::optional<std::string> get(std::string_view key);
  // Several keys, keys_per_request() to a request, in their order. get and get_many throw
  // NotAskedError if keys were not asked for.
  std::vector<std::optional<std::string>> get_many(std::span<const std::string> keys);
  std::vector<Answer> look_up(std::span<const std::string> keys);

  // look_up() in steps, for a caller that prepares queries between the requests; one at a time.
  //
  // Checks the keys, which have to stay as they are until the look-up ends. Returns the number of
  // queries that they take. Drops a look-up that has begun before.
  size_t begin_look_up(std::span<const std::string> keys);
  // Asks with up to `count` more queries, and returns how many are left then. If the epoch changes,
  // all keys are asked for again, once: then more may be left than before. After an error the same
  // step can be taken again.
  size_t ask(size_t count);
  // Decodes the answers once no query is left, and ends the look-up.
  std::vector<Answer> end_look_up();
  // Instead, at any time.
  void drop_look_up();

  // The keys that one request can ask for, as far as the database is known. Sends nothing.
  size_t keys_per_request() const;

  // The properties of the database in the epoch of the session's hints. Fetches the hints if there
  // are none.
  const DatabaseDescription& database();

 private:
  struct Pooled {
    PreparedQuery query;
    double seconds;
  };
  struct Request;
  struct LookUp;

  void sync_once(bool verify, SyncResult& result);
  std::string fetch_manifest();
  std::string take_manifest();
  void use(DatabaseDescription database);
  void check_kind(DatabaseKind kind);
  void check_limits(const Layout& layout) const;
  size_t request_size();
  Pooled take_prepared();
  // Of which a request needs `needed` now, and the look-up `left` from now on, except those that
  // are ready.
  size_t queries_to_make(size_t needed, size_t left);
  Request encrypt(const LookUp& look_up, size_t count);
  DecodingSecret encrypt_for_key(const LookUp& look_up, size_t key, size_t i, Request& request,
                                 std::span<uint8_t> bytes);
  DecodingSecret encrypt_for_buckets(const LookUp& look_up, Request& request,
                                     std::span<uint8_t> bytes);
  void send(Request& request);
  void open_hints();
  // From its beginning, for the current database.
  void plan(LookUp& look_up);
  // With up to `count` more queries; with the first ones if the epoch changes.
  void ask_some(LookUp& look_up, size_t count);
  std::vector<Answer> decode_all(LookUp look_up);
  void note_costs(const LookUp& look_up, double decode_seconds, std::vector<Answer>& answers) const;

  ClientOptions options_;
  RandomSource random_;
  RemoteDatabase remote_;
  HintCache cache_;
  ManifestGuard guard_;
  const HintFiles hint_files_;
  std::optional<std::string> manifest_text_;  // fetched, and not yet used
  std::optional<DatabaseKind> kind_;          // of the first database there was
  std::optional<DatabaseDescription> database_;
  std::optional<CheckedHints> hints_;            // of database_, once a query was wanted
  std::optional<QueryPreparation> preparation_;  // for database_, once a query was wanted
  std::deque<Pooled> prepared_;
  std::shared_ptr<LookUp> begun_;  // in steps
  size_t queries_per_request_ = kQueriesPerRequest;
};

// Throws NotAskedError if keys were not asked for.
std::vector<std::optional<std::string>> values_of(std::vector<Answer> answers);

}  // namespace blindfuse
