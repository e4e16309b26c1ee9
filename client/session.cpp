#include "client/session.h"

#include <blindfuse/errors.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "client/decoder.h"
#include "client/key_copies.h"
#include "client/report_progress.h"
#include "src/base/errors.h"
#include "src/base/release_memory.h"

namespace blindfuse {
namespace {

using std::chrono::steady_clock;

constexpr int kBusyRetriesMax = 5;
constexpr uint64_t kRetryAfterMaxS = 60;
constexpr uint64_t kRequestBytesMax = uint64_t{256} << 20;

double seconds_since(steady_clock::time_point start) {
  return std::chrono::duration<double>(steady_clock::now() - start).count();
}

std::filesystem::path cache_of(const ClientOptions& options) {
  return options.cache_folder.empty() ? default_cache_folder() : options.cache_folder;
}

void check_limit(const char* what, uint64_t bytes, uint64_t bytes_max, const char* option) {
  if (bytes <= bytes_max) return;
  throw InputError(std::string(what) + " of this database take " + std::to_string(bytes) +
                   " bytes; allowed are " + std::to_string(bytes_max) + " (" + option + ")");
}

}  // namespace

// One request: what was asked, and what decodes the answers.
struct Session::Batch {
  SecretBuffer<KeyPlace> places;
  std::vector<DecodingSecret> secrets;
  std::vector<double> prepare_seconds;
  std::vector<uint8_t> body;
  std::vector<SecretBuffer<uint32_t>> words;  // of each response, its shard's
  double encrypt_seconds = 0;
  double server_seconds = 0;
};

// How often a request may be made again, always with other queries.
class Session::Attempts {
 public:
  Attempts(const ProgressCallback& progress, const Deadline& deadline)
      : progress_(&progress), deadline_(&deadline) {}

  // Waits as long as the server asks for; gives up, throwing `busy`, when that is too long, longer
  // than the call may take, or too often.
  void wait_for(const ServerBusyError& busy) {
    const uint64_t wait_s = busy.retry_after_s().value_or(1);
    if (++busy_count_ > kBusyRetriesMax || wait_s > kRetryAfterMaxS ||
        std::chrono::seconds(wait_s) >= deadline_->left()) {
      throw ServerBusyError(busy);
    }
    const auto until = steady_clock::now() + std::chrono::seconds(wait_s);
    do {
      report_progress(*progress_, {ClientStage::kWaitingForServer});
      std::this_thread::sleep_for(std::min<steady_clock::duration>(until - steady_clock::now(),
                                                                   std::chrono::milliseconds(100)));
    } while (steady_clock::now() < until);
  }

  void succeeded() {
    busy_count_ = 0;
    connected_anew_ = false;
  }

  // True once for each request.
  bool may_connect_anew() { return !std::exchange(connected_anew_, true); }

  // True once.
  bool may_sync() { return !std::exchange(synced_, true); }

 private:
  const ProgressCallback* progress_;
  const Deadline* deadline_;
  int busy_count_ = 0;
  bool connected_anew_ = false;
  bool synced_ = false;
};

Session::Session(std::unique_ptr<Transport> transport, const std::string& address,
                 ClientOptions options, RandomSource random, HintFiles files, Deadline::Clock clock)
    : options_(std::move(options)),
      random_(std::move(random)),
      remote_(std::move(transport), address, options_.http.timeout, std::move(clock)),
      cache_(database_folder(cache_of(options_), address)),
      guard_(database_folder(cache_of(options_), address), address, options_),
      hint_files_(files),
      manifest_text_(fetch_manifest()) {}

SyncResult Session::sync(bool verify) {
  const Deadline::Call call(deadline());
  SyncResult result;
  try {
    sync_once(verify, result);
  } catch (const EpochGoneError&) {
    // The server went on to another epoch after it sent its manifest.
    sync_once(verify, result);
  }
  return result;
}

void Session::sync_once(bool verify, SyncResult& result) {
  const std::string manifest = take_manifest();
  const Layout layout = parse_manifest(manifest).manifest.layout;
  check_kind(layout.kind);
  check_limits(layout);
  use(cache_.sync(remote_, manifest, verify, options_.progress, result));
}

std::string Session::take_manifest() {
  // Used once, whatever comes of it: what is wrong with it now would stay wrong.
  if (auto fetched = std::exchange(manifest_text_, std::nullopt)) return std::move(*fetched);
  return fetch_manifest();
}

std::string Session::fetch_manifest() {
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

void Session::check_kind(DatabaseKind kind) {
  if (!kind_) kind_ = kind;
  if (*kind_ == kind) return;
  const bool was_keyword = *kind_ == DatabaseKind::kKeyword;
  throw ProtocolError("the server at " + remote_.address() + " had " +
                      (was_keyword ? "a keyword database and now has an index database"
                                   : "an index database and now has a keyword database") +
                      ": when that is meant to be, make a new client");
}

void Session::check_limits(const Layout& layout) const {
  if (!options_.mode.empty() && options_.mode != mode_name(layout.mode())) {
    throw InputError("this database is in the mode " + std::string(mode_name(layout.mode())) +
                     ", and only the mode " + options_.mode + " is accepted (--mode)");
  }
  check_limit(layout.mode() == Mode::kPacked ? "the masks" : "the hints", layout.hint_bytes(),
              options_.hint_bytes_max, "--hint-bytes-max");
  check_limit("the query and the response", std::max(layout.query_bytes(), layout.response_bytes()),
              options_.transfer_bytes_max, "--transfer-bytes-max");
}

const DatabaseDescription& Session::database() {
  const Deadline::Call call(deadline());
  if (database_) return *database_;
  std::string manifest = take_manifest();
  const ParsedManifest wanted = parse_manifest(manifest);
  if (auto stored = cache_.stored(); stored && stored->epoch() == wanted.epoch) {
    check_kind(wanted.manifest.layout.kind);
    check_limits(wanted.manifest.layout);
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

size_t Session::request_size() {
  const Layout& layout = database().layout();
  const uint64_t each = std::max(layout.query_bytes(), layout.response_bytes());
  return std::clamp<uint64_t>(kRequestBytesMax / each, 1, queries_per_request_);
}

Session::Pooled Session::take_prepared() {
  Pooled pooled = std::move(prepared_.front());
  prepared_.pop_front();
  return pooled;
}

Session::Batch Session::encrypt(std::span<const std::string> keys) {
  const Layout& layout = database().layout();
  std::erase_if(prepared_, [](const Pooled& pooled) { return !pooled.query.is_of_this_process(); });
  if (prepared_.size() < keys.size()) {
    prepare(std::max(keys.size() - prepared_.size(), options_.prepare_batch));
  }
  const auto start = steady_clock::now();
  Batch batch;
  batch.places = SecretBuffer<KeyPlace>(keys.size());
  batch.body.resize(keys.size() * layout.query_bytes());
  for (size_t i = 0; i < keys.size(); ++i) {
    KeyPlace& place = batch.places[i];
    place = database_->place(keys[i]);
    Pooled pooled = take_prepared();
    batch.prepare_seconds.push_back(pooled.seconds);
    batch.secrets.push_back(
        std::move(pooled.query)
            .encrypt(
                std::span(place.rows).first(place.row_count), place.shard, layout,
                std::span(batch.body).subspan(i * layout.query_bytes(), layout.query_bytes())));
  }
  batch.encrypt_seconds = seconds_since(start) / static_cast<double>(keys.size());
  return batch;
}

std::vector<Answer> Session::decode_all(std::vector<Batch> batches, size_t key_count) {
  const auto start = steady_clock::now();
  const Layout& layout = database_->layout();
  std::vector<Answer> answers(key_count);
  std::vector<std::pair<Batch*, size_t>> asked;  // for each key, its batch and position there
  SecretBuffer<uint32_t> shards(key_count);
  for (Batch& batch : batches) {
    for (size_t i = 0; i < batch.places.size(); ++i) {
      shards[asked.size()] = batch.places[i].shard;
      asked.emplace_back(&batch, i);
    }
  }
  size_t done = 0;
  hints_->for_each(shards.span(), [&](size_t k, std::span<const uint8_t> hint) {
    if (done++ % kQueriesPerRequest == 0) {
      report_progress(options_.progress, {ClientStage::kDecodingAnswers, done - 1, key_count});
    }
    auto& [batch, i] = asked[k];
    const KeyPlace& place = batch->places[i];
    const std::vector<uint8_t> record =
        decode(std::move(batch->secrets[i]), layout, place.shard, batch->words[i].span(), hint);
    answers[k].value = database_->value_in(record, place);
  });
  const double decode_seconds = seconds_since(start) / static_cast<double>(key_count);
  for (size_t k = 0; k < key_count; ++k) {
    const auto& [batch, i] = asked[k];
    Answer& answer = answers[k];
    answer.query_bytes = layout.query_bytes();
    answer.response_bytes = layout.response_bytes();
    answer.prepare_seconds = batch->prepare_seconds[i];
    answer.server_seconds = batch->server_seconds;
    answer.request_keys = static_cast<uint32_t>(batch->places.size());
    answer.decode_seconds = decode_seconds;
    answer.total_seconds = answer.prepare_seconds + batch->encrypt_seconds + answer.server_seconds +
                           answer.decode_seconds;
  }
  return answers;
}

void Session::ask(Batch& batch) {
  const Layout& layout = database_->layout();
  const size_t count = batch.places.size();
  const auto start = steady_clock::now();
  const std::vector<uint8_t> responses =
      remote_.ask(database_->epoch(), batch.body, count * layout.response_bytes());
  batch.server_seconds = seconds_since(start);
  release_memory(batch.body);
  for (size_t i = 0; i < count; ++i) {
    const auto response =
        std::span(responses).subspan(i * layout.response_bytes(), layout.response_bytes());
    batch.words.push_back(words_of_shard(layout, batch.places[i].shard, response));
  }
}

void Session::allow_for(size_t count) {
  const Layout& layout = database().layout();
  deadline().allow(count * (layout.query_bytes() + layout.response_bytes()));
}

void Session::open_hints() {
  const DatabaseDescription& database = this->database();
  if (hints_) return;
  deadline().stopped([&] {
    hints_.emplace(cache_, database, hint_files_, options_.hint_memory_bytes_max,
                   options_.progress);
  });
}

std::vector<Session::Batch> Session::ask_all(std::span<const std::string> keys) {
  std::vector<Batch> batches;
  Attempts attempts(options_.progress, deadline());
  allow_for(keys.size());
  for (size_t at = 0; at < keys.size();) {
    open_hints();  // before any query: what is wrong with one is found whatever the keys are
    const size_t count = std::min(request_size(), keys.size() - at);
    Batch batch = encrypt(keys.subspan(at, count));
    try {
      ask(batch);
    } catch (const ServerBusyError& busy) {
      attempts.wait_for(busy);
      continue;
    } catch (const KeptConnectionClosed&) {
      // Perhaps before the server saw the request. A query is never sent twice.
      if (!attempts.may_connect_anew()) throw;
      continue;
    } catch (const EpochGoneError&) {
      if (!attempts.may_sync()) throw;
      sync();
      allow_for(keys.size());
      // What was answered belongs to hints that are gone.
      batches.clear();
      at = 0;
      continue;
    } catch (const ServerError& refusal) {
      // A server that takes fewer queries at a time than most: from now on one by one.
      if (count == 1 || (refusal.status() != 413 && refusal.status() != 400)) throw;
      queries_per_request_ = 1;
      continue;
    }
    batches.push_back(std::move(batch));
    at += count;
    attempts.succeeded();
  }
  return batches;
}

void Session::check_keys(std::span<const std::string> keys) {
  SecretBuffer<KeyPlace> place(1);
  for (const std::string& key : keys) place[0] = database().place(key);
}

std::vector<Answer> Session::look_up(std::span<const std::string> keys) {
  if (keys.empty()) return {};
  const Deadline::Call call(deadline());
  check_keys(keys);  // all, before any is asked for
  std::vector<Batch> batches = ask_all(keys);
  return deadline().stopped([&] { return decode_all(std::move(batches), keys.size()); });
}

std::vector<std::optional<std::string>> Session::get_many(std::span<const std::string> keys) {
  std::vector<std::optional<std::string>> values;
  for (Answer& answer : look_up(keys)) values.push_back(std::move(answer.value));
  return values;
}

std::optional<std::string> Session::get(std::string_view key) {
  KeyCopies one(1);
  one.add(key);
  return std::move(get_many(one.span()).front());
}

}  // namespace blindfuse
