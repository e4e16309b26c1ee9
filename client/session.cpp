#include "client/session.h"

#include <blindfuse/errors.h>

#include <algorithm>
#include <chrono>

#include "client/look_up.h"
#include "src/base/errors.h"
#include "src/protocol/epoch_table.h"

namespace blindfuse {
namespace {

using std::chrono::steady_clock;

// There are at most as many parts as shards. A client keeps a name of each in memory, and 4 bytes
// for each of the 2^26 columns that as many masks have. A server needs 25 MB of memory for each
// mask.
constexpr uint32_t kPartsMax = kShardCountMax;

std::filesystem::path cache_of(const ClientOptions& options) {
  return options.cache_folder.empty() ? default_cache_folder() : options.cache_folder;
}

void check_limit(const char* what, uint64_t bytes, uint64_t bytes_max, const char* option) {
  if (bytes <= bytes_max) return;
  throw InputError(std::string(what) + " of this database take " + std::to_string(bytes) +
                   " bytes; allowed are " + std::to_string(bytes_max) + " (" + option + ")");
}

}  // namespace

Session::Session(std::unique_ptr<Transport> transport, const std::string& address,
                 ClientOptions options, RandomSource random, HintFiles files, Deadline::Clock clock)
    : options_(std::move(options)),
      random_(std::move(random)),
      remote_(std::move(transport), address, options_.http.timeout, std::move(clock),
              options_.progress),
      cache_(database_folder(cache_of(options_), address)),
      guard_(database_folder(cache_of(options_), address), address, options_),
      hint_files_(files) {
  manifest_text_ = take_manifest();
}

SyncResult Session::sync(bool verify) {
  const Deadline::Call call(deadline());
  SyncResult result;
  for (bool again = false;; again = true) {
    try {
      const std::string manifest = take_manifest();
      check(parse_manifest(manifest).manifest.layout);
      use(cache_.sync(remote_, manifest, verify, options_.progress, result));
      return result;
    } catch (const EpochGoneError&) {
      // The server went on to another epoch after it sent its manifest.
      if (again) throw;
    }
  }
}

std::string Session::take_manifest() {
  // The manifest is used once, whatever the outcome: an error in it would stay one.
  if (auto fetched = std::exchange(manifest_text_, std::nullopt)) return std::move(*fetched);
  std::string text = remote_.fetch_manifest();
  guard_.take(parse_manifest(text));
  return text;
}

void Session::use(DatabaseDescription database) {
  std::erase_if(prepared_, [&database](const Pooled& pooled) {
    return !pooled.query.is_for(database.manifest());
  });
  preparation_.reset();
  cache_.use(database);
  if (!database_ || database_->epoch() != database.epoch()) hints_.reset();
  database_ = std::move(database);
}

// Throws ProtocolError for a database of another kind than the first one, and InputError for one
// that the options refuse.
void Session::check(const Layout& layout) {
  if (!kind_) kind_ = layout.kind;
  if (*kind_ != layout.kind) {
    const bool was_keyword = *kind_ == DatabaseKind::kKeyword;
    throw ProtocolError("the server at " + remote_.address() + " had " +
                        (was_keyword ? "a keyword database and now has an index database"
                                     : "an index database and now has a keyword database") +
                        ": when that is meant to be, make a new client");
  }
  if (options_.mode && *options_.mode != mode_name(layout.mode())) {
    throw InputError("this database is in the mode " + std::string(mode_name(layout.mode())) +
                     ", and only the mode " + *options_.mode + " is accepted (--mode)");
  }
  if (layout.hint_part_count() > kPartsMax) {
    throw InputError("this database has " + std::to_string(layout.hint_part_count()) +
                     " masks, and a client takes at most " + std::to_string(kPartsMax));
  }
  check_limit(layout.mode() == Mode::kPacked ? "the masks" : "the hints", layout.hint_bytes(),
              options_.hint_bytes_max, "--hint-bytes-max");
  check_limit("the tables of shards and packs", epoch_table_bytes(layout),
              options_.transfer_bytes_max, "--transfer-bytes-max");
  check_limit("the query and the response", std::max(layout.query_bytes(), layout.response_bytes()),
              options_.transfer_bytes_max, "--transfer-bytes-max");
}

const DatabaseDescription& Session::database() {
  const Deadline::Call call(deadline());
  if (database_) return *database_;
  std::string manifest = take_manifest();
  const ParsedManifest wanted = parse_manifest(manifest);
  if (auto stored = cache_.stored(); stored && stored->epoch() == wanted.epoch) {
    check(wanted.manifest.layout);
    use(std::move(*stored));
  } else {
    manifest_text_ = std::move(manifest);
    sync();
  }
  return *database_;
}

void Session::prepare(size_t count) {
  const Deadline::Call call(deadline());
  const Manifest& manifest = database().manifest();
  const auto start = steady_clock::now();
  if (!preparation_) preparation_.emplace(manifest);
  std::vector<PreparedQuery> queries = deadline().stopped(
      [&] { return preparation_->make(count, options_.thread_count, random_, options_.progress); });
  add_prepared(std::move(queries),
               seconds_since(start) / static_cast<double>(std::max<size_t>(count, 1)));
}

void Session::add_prepared(std::vector<PreparedQuery> queries, double seconds) {
  const Manifest& manifest = database().manifest();
  for (PreparedQuery& query : queries) {
    invariant(query.is_for(manifest), "a query is for this database");
    prepared_.push_back({std::move(query), seconds});
  }
}

void Session::open_hints() {
  const DatabaseDescription& database = this->database();
  if (hints_) return;
  deadline().stopped([&] {
    hints_.emplace(cache_, database, hint_files_, options_.hint_memory_bytes_max,
                   options_.progress);
  });
}

size_t Session::request_size() {
  const Layout& layout = database().layout();
  return layout.batch ? 1 : std::min(queries_at_once(layout), queries_per_request_);
}

size_t Session::keys_per_request() const {
  const bool several = database_ && database_->layout().batch;
  return several ? database_->layout().batch->keys_per_request : kQueriesPerRequest;
}

void Session::make_ready(size_t count, size_t left) {
  std::erase_if(prepared_, [](const Pooled& pooled) { return !pooled.query.is_of_this_process(); });
  if (prepared_.size() >= count) return;
  const size_t ready = prepared_.size();
  size_t ahead = options_.prepare_batch;
  // A query for several keys is large, and takes long to make anyway.
  if (ahead == 0 && !database().layout().batch) {
    ahead = std::min(left - ready, queries_at_once(database().layout()));
  }
  prepare(std::max(count - ready, ahead));
}

std::vector<Answer> Session::look_up(std::span<const std::string_view> keys) {
  if (keys.empty()) return {};
  const Deadline::Call call(deadline());
  LookUp look_up(*this, keys);
  while (look_up.queries_left() > 0) look_up.ask(look_up.queries_left());
  return std::move(look_up).decode();
}

}  // namespace blindfuse
