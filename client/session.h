// Look-ups in one database, for one thread at a time: the part of the client library
// (<blindfuse/client.h>) that does not depend on the transport.
#pragma once

#include <blindfuse/client_options.h>
#include <blindfuse/results.h>

#include <chrono>
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
#include "client/remote_database.h"
#include "client/ring_query.h"
#include "src/system/random.h"

namespace blindfuse {

// Errors: <blindfuse/errors.h>. After any of them the session can be used again.
//
// database() and look-ups first fetch the hints if there are none yet, or if the server no longer
// serves their epoch. Every query consumes a prepared one, whether it is answered or not. A request
// is repeated with new queries: a few times if the server is busy, once if it closed a connection
// that was kept. If the epoch changes during a look-up, all its keys are asked for again, once.
// LookUp says why the server's view never depends on a key. A session is for a keyword database or
// for an index database, whichever it saw first: a key of one may be invalid in the other, and
// whether a query follows would reveal this.
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

  // The status belongs to the last manifest that was accepted.
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

  // The answers to keys, which are byte strings, or decimal numbers in an index database: a LookUp
  // from its beginning to its end.
  std::vector<Answer> look_up(std::span<const std::string_view> keys);

  // The keys that one request can ask for, as far as the database is known. Sends nothing.
  size_t keys_per_request() const;

  // The properties of the database in the epoch of the session's hints. Fetches the hints if there
  // are none.
  const DatabaseDescription& database();

 private:
  friend class LookUp;
  struct Pooled {
    PreparedQuery query;
    double seconds;
  };

  // The manifest in manifest_text_, or else the server's.
  std::string take_manifest();
  void use(DatabaseDescription database);
  void check(const Layout& layout);
  void open_hints();
  // The queries that the next request may have.
  size_t request_size();
  // Prepares queries until there are `count`, or more: a look-up needs `left` of them from now on.
  void make_ready(size_t count, size_t left);

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

// The time of a part of a call, for the statistics of answers.
inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace blindfuse
