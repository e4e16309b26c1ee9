// The client library: private look-ups in one database.
//
//   auto words = blindfuse::Client::connect("http://127.0.0.1:8080");
//   std::optional<std::string> value = words.get("serendipity");
//
// The server learns how many keys are asked for and when; not which, and not whether they are
// there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client/database_description.h"
#include "client/hint_cache.h"
#include "client/http_transport.h"
#include "client/prepared_query.h"
#include "client/progress_callback.h"
#include "client/remote_database.h"
#include "src/system/random.h"

namespace blindfuse {

// Queries in one request: what a server takes unless its operator says otherwise.
inline constexpr size_t kQueriesPerRequest = 8;

struct ClientOptions {
  std::filesystem::path cache_folder;  // for all databases; empty: default_cache_folder()
  unsigned thread_count = 0;           // to prepare queries with; 0: one a processor
  size_t prepare_batch = 1;            // queries made in one pass when none are left
  HttpOptions http;
  // A database that needs more is refused before anything is fetched: hints on disk, and one query
  // or response.
  uint64_t hint_bytes_max = uint64_t{64} << 30;
  uint64_t transfer_bytes_max = uint64_t{1} << 30;
  ProgressCallback progress;
  RandomSource random = fill_from_system;
};

// One look-up, and what it took.
struct Answer {
  std::optional<std::string> value;  // nothing: the key is not there
  uint64_t query_bytes = 0;
  uint64_t response_bytes = 0;
  double prepare_seconds = 0;  // its share of the pass that made its query
  double server_seconds = 0;   // of the whole request, which other keys may have shared
  double decode_seconds = 0;
  double total_seconds = 0;  // all of that, and making the query from the prepared one
};

// One thread at a time. Errors: client/errors.h; after any of them the client can be used again.
//
// get, get_many and look_up fetch the hints first when the server has a new epoch. Every query uses
// up a prepared one, answered or not: a request is repeated (a few times when the server is busy)
// with new queries. When the epoch changes in a look-up, all its keys are asked for again, once.
// What the server sees never depends on a key: all requests of a look-up are sent before the first
// answer is decoded.
class Client {
 public:
  // Checks that the server answers with a manifest. Throws BadInput for a malformed URL or key of
  // the cache.
  static Client connect(std::string_view url, ClientOptions options = {});

  // The same over another transport; `address` names the server in messages and in the cache.
  Client(std::unique_ptr<Transport> transport, const std::string& address, ClientOptions options);

  // Brings the hints up to the server's current epoch; with `verify`, checks every cached one
  // first.
  SyncResult sync(bool verify = false);

  // Makes `count` more queries ahead, in one pass. Memory: 4 R bytes each.
  void prepare(size_t count);
  size_t prepared_count() const { return prepared_.size(); }

  // The value of a key: a byte string, or a decimal number in an index database.
  std::optional<std::string> get(std::string_view key);
  // Several keys, kQueriesPerRequest to a request, in their order.
  std::vector<std::optional<std::string>> get_many(std::span<const std::string> keys);
  std::vector<Answer> look_up(std::span<const std::string> keys);

  // What is known of the database; fetches the hints first when that is not the current epoch.
  const DatabaseDescription& database();

 private:
  struct Pooled {
    PreparedQuery query;
    double seconds;
  };
  struct Batch;
  class Attempts;

  void sync_once(bool verify, SyncResult& result);
  std::string take_manifest();
  void use(DatabaseDescription database);
  void check_limits(const Layout& layout) const;
  size_t request_size();
  Pooled take_prepared();
  Batch encrypt(std::span<const std::string> keys);
  void ask(Batch& batch);
  std::vector<Batch> ask_all(std::span<const std::string> keys);
  void sync_within_look_up();
  void decode_batch(Batch batch, std::span<Answer> answers);

  ClientOptions options_;
  RemoteDatabase remote_;
  HintCache cache_;
  std::optional<std::string> manifest_text_;  // fetched, and not yet used
  std::optional<DatabaseDescription> database_;
  std::deque<Pooled> prepared_;
  size_t queries_per_request_ = kQueriesPerRequest;
};

}  // namespace blindfuse
