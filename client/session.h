// Look-ups in one database, for one thread at a time: what the client library is made of
// (<blindfuse/client.h>), apart from how bytes get to the server.
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

// Errors: <blindfuse/errors.h>; after any of them the session can be used again.
//
// get, get_many and look_up fetch the hints first when there are none yet, and when the server no
// longer serves the epoch of those that there are. Every query uses
// up a prepared one, answered or not: a request is repeated (a few times when the server is busy,
// once when it closed a connection that was kept) with new queries. When the epoch changes in a
// look-up, all its keys are asked for again, once. What the server sees never depends on a key: all
// hints of an epoch are checked before the first query to it, all requests of a look-up are sent
// before the first answer is decoded, and decoding does the same work for every key (CheckedHints).
// So a session is for a keyword database or for an index one, whichever it saw first: what is a key
// in the one may be none in the other, and whether a query follows would tell.
class Session {
 public:
  // Checks that the server answers with a manifest, and that ManifestGuard takes it, as every later
  // one, before anything else is done with it. `address` names the server in messages and in
  // the cache, whose files are where `files` says. Secrets are drawn from `random`.
  Session(std::unique_ptr<Transport> transport, const std::string& address, ClientOptions options,
          RandomSource random = fill_from_system, HintFiles files = HintFiles::kOnDisk,
          Deadline::Clock clock = std::chrono::steady_clock::now);

  // Of the call under way. What is asked of the session within one Deadline::Call is one call; else
  // each function is.
  Deadline& deadline() { return remote_.deadline(); }

  // As of the last manifest that was taken.
  std::shared_ptr<const SignerStatus> signer() const { return guard_.status(); }
  ManifestGuard& guard() { return guard_; }

  // Brings the hints up to the server's current epoch; with `verify`, checks every cached one
  // first.
  SyncResult sync(bool verify = false);

  // Makes `count` more queries ahead, in one pass. Memory: 4 R bytes each, and 48 KiB more where
  // responses are packed.
  void prepare(size_t count);
  size_t prepared_count() const { return prepared_.size(); }
  // Takes queries that were made ahead elsewhere, in this many seconds each: for database(), as
  // PreparedQuery::is_for has it.
  void add_prepared(std::vector<PreparedQuery> queries, double seconds);

  // Throws InputError when one of the keys can be no key of this database.
  void check_keys(std::span<const std::string> keys);

  // The value of a key: a byte string, or a decimal number in an index database.
  std::optional<std::string> get(std::string_view key);
  // Several keys, kQueriesPerRequest to a request, in their order.
  std::vector<std::optional<std::string>> get_many(std::span<const std::string> keys);
  std::vector<Answer> look_up(std::span<const std::string> keys);

  // What is known of the database: of the epoch whose hints are there, which are fetched when there
  // are none.
  const DatabaseDescription& database();

 private:
  struct Pooled {
    PreparedQuery query;
    double seconds;
  };
  struct Batch;
  class Attempts;

  void sync_once(bool verify, SyncResult& result);
  std::string fetch_manifest();
  std::string take_manifest();
  void use(DatabaseDescription database);
  void check_kind(DatabaseKind kind);
  void check_limits(const Layout& layout) const;
  size_t request_size();
  Pooled take_prepared();
  Batch encrypt(std::span<const std::string> keys);
  void ask(Batch& batch);
  void open_hints();
  // The time to move this many queries and their responses.
  void allow_for(size_t count);
  std::vector<Batch> ask_all(std::span<const std::string> keys);
  std::vector<Answer> decode_all(std::vector<Batch> batches, size_t key_count);

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
  size_t queries_per_request_ = kQueriesPerRequest;
};

}  // namespace blindfuse
