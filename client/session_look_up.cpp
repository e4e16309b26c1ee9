// The look-ups of a session: from keys to requests, and from responses to values.
#include <blindfuse/errors.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "client/batch_plan.h"
#include "client/bucket_places.h"
#include "client/decoder.h"
#include "client/key_copies.h"
#include "client/keys_at_once.h"
#include "client/report_progress.h"
#include "client/seconds_since.h"
#include "client/session.h"
#include "src/base/errors.h"
#include "src/base/release_memory.h"

namespace blindfuse {
namespace {

using std::chrono::steady_clock;

}  // namespace

// One request: what was asked, and what decodes the answers. It has the places of its queries, one
// after another: one for each bucket of the database, and so one alone if there are no buckets.
struct Session::Request {
  Request(const Layout& layout, size_t query_count)
      : places(query_count * layout.bucket_count()),
        keys(places.size()),
        body(query_count * layout.query_bytes()) {}

  SecretBuffer<KeyPlace> places;
  // The key of each place among those of the look-up. Of a bucket without a key, their number.
  SecretBuffer<uint32_t> keys;
  std::vector<DecodingSecret> secrets;  // of each query
  std::optional<RingDecoder> decoder;   // of the query, if it has several places
  std::vector<double> prepare_seconds;  // of each query
  std::vector<uint8_t> body;
  std::vector<SecretBuffer<uint32_t>> words;  // of each place, its shard's
  double encrypt_seconds = 0;
  double server_seconds = 0;
};

// The keys of one look-up, and the requests for them that were answered.
struct Session::LookUp {
  std::span<const std::string> keys;
  EpochId epoch = {};                  // of what follows
  std::optional<BatchPlan> plan = {};  // if requests are for several keys
  SecretBuffer<KeyPlace> places = {};  // otherwise, of all keys
  std::vector<Request> requests = {};
  size_t queries_done = 0;
  bool has_synced = false;  // because the server no longer had the epoch

  size_t query_count() const { return plan ? plan->request_count() : keys.size(); }
  size_t queries_left() const { return query_count() - queries_done; }
};

size_t Session::request_size() {
  const Layout& layout = database().layout();
  return layout.batch ? 1 : std::min(queries_at_once(layout), queries_per_request_);
}

size_t Session::keys_per_request() const {
  const bool several = database_ && database_->layout().batch;
  return several ? database_->layout().batch->keys_per_request : kQueriesPerRequest;
}

Session::Pooled Session::take_prepared() {
  Pooled pooled = std::move(prepared_.front());
  prepared_.pop_front();
  return pooled;
}

size_t Session::queries_to_make(size_t needed, size_t left) {
  if (options_.prepare_batch > 0) return std::max(needed, options_.prepare_batch);
  // A query for several keys is large, and takes long to make anyway.
  if (database().layout().batch) return needed;
  return std::max(needed, std::min(left, queries_at_once(database().layout())));
}

// Of the queries that are left, the first `count`.
Session::Request Session::encrypt(const LookUp& look_up, size_t count) {
  const Layout& layout = database().layout();
  std::erase_if(prepared_, [](const Pooled& pooled) { return !pooled.query.is_of_this_process(); });
  if (prepared_.size() < count) {
    const size_t ready = prepared_.size();
    prepare(queries_to_make(count - ready, look_up.queries_left() - ready));
  }
  const auto start = steady_clock::now();
  Request request(layout, count);
  for (size_t i = 0; i < count; ++i) {
    const auto bytes =
        std::span(request.body).subspan(i * layout.query_bytes(), layout.query_bytes());
    if (look_up.plan) {
      request.secrets.push_back(encrypt_for_buckets(look_up, request, bytes));
    } else {
      request.secrets.push_back(
          encrypt_for_key(look_up, look_up.queries_done + i, i, request, bytes));
    }
  }
  request.encrypt_seconds = seconds_since(start);
  return request;
}

DecodingSecret Session::encrypt_for_key(const LookUp& look_up, size_t key, size_t i,
                                        Request& request, std::span<uint8_t> bytes) {
  KeyPlace& place = request.places[i];
  place = look_up.places[key];
  request.keys[i] = static_cast<uint32_t>(key);
  Pooled pooled = take_prepared();
  request.prepare_seconds.push_back(pooled.seconds);
  return std::move(pooled.query)
      .encrypt(std::span(place.rows).first(place.row_count), place.shard, database_->layout(),
               bytes);
}

DecodingSecret Session::encrypt_for_buckets(const LookUp& look_up, Request& request,
                                            std::span<uint8_t> bytes) {
  const SecretBuffer<BucketRows> buckets = places_in_buckets(
      *database_, *look_up.plan, look_up.queries_done, request.places.span(), request.keys.span());
  Pooled pooled = take_prepared();
  request.prepare_seconds.push_back(pooled.seconds);
  return std::move(pooled.query).encrypt(buckets.span(), database_->layout(), bytes);
}

void Session::send(Request& request) {
  const Layout& layout = database_->layout();
  const size_t count = request.secrets.size();
  const auto start = steady_clock::now();
  const std::vector<uint8_t> responses =
      remote_.ask(database_->epoch(), request.body, count * layout.response_bytes());
  request.server_seconds = seconds_since(start);
  release_memory(request.body);
  for (size_t i = 0; i < request.places.size(); ++i) {
    const size_t query = i / layout.bucket_count();
    const auto response =
        std::span(responses).subspan(query * layout.response_bytes(), layout.response_bytes());
    request.words.push_back(words_of_shard(layout, request.places[i].shard, response));
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

void Session::plan(LookUp& look_up) {
  const DatabaseDescription& database = this->database();
  const Layout& layout = database.layout();
  look_up.epoch.clear();  // until it is whole
  look_up.plan.reset();
  look_up.places.clear();
  look_up.requests.clear();
  look_up.queries_done = 0;
  // All keys are hashed before the first request: how long that takes depends on their lengths.
  deadline().stopped([&] {
    const size_t count = look_up.keys.size();
    if (layout.batch) {
      SecretBuffer<KeyHash> hashes(count);
      for (size_t i = 0; i < count; ++i) hashes[i] = database.hash(look_up.keys[i]);
      look_up.plan.emplace(std::move(hashes), *layout.batch);
    } else {
      look_up.places = SecretBuffer<KeyPlace>(count);
      for (size_t i = 0; i < count; ++i) look_up.places[i] = database.place(look_up.keys[i]);
    }
  });
  look_up.epoch = database.epoch();
}

void Session::ask_some(LookUp& look_up, size_t count) {
  size_t end = 0;  // of the queries to be done
  // How often the next request was made already, always with other queries.
  int busy_count = 0;
  bool has_connected_anew = false;
  const auto begin_request = [&] {
    busy_count = 0;
    has_connected_anew = false;
  };
  const auto begin = [&] {
    const Layout& layout = database_->layout();
    const size_t more = std::min(count, look_up.queries_left());
    end = look_up.queries_done + more;
    deadline().allow(more * (layout.query_bytes() + layout.response_bytes()));
  };
  if (look_up.epoch != database().epoch()) plan(look_up);
  begin();
  while (look_up.queries_done < end) {
    open_hints();  // before any query: what is wrong with one is found whatever the keys are
    const size_t size = std::min(request_size(), end - look_up.queries_done);
    Request request = encrypt(look_up, size);
    try {
      send(request);
    } catch (const ServerBusyError& busy) {
      remote_.wait_while_busy(busy, ++busy_count);
      continue;
    } catch (const KeptConnectionClosed&) {
      // Perhaps before the server saw the request. A query is never sent twice.
      if (std::exchange(has_connected_anew, true)) throw;
      continue;
    } catch (const EpochGoneError&) {
      if (look_up.has_synced) throw;
      sync();
      look_up.has_synced = true;
      // What was answered belongs to hints that are gone.
      plan(look_up);
      begin();
      continue;
    } catch (const ServerError& refusal) {
      // A server that takes fewer queries at a time than most: from now on one by one.
      if (size == 1 || (refusal.status() != 413 && refusal.status() != 400)) throw;
      queries_per_request_ = 1;
      begin_request();
      continue;
    }
    look_up.requests.push_back(std::move(request));
    look_up.queries_done += size;
    begin_request();
  }
}

std::vector<Answer> Session::decode_all(LookUp look_up) {
  invariant(hints_.has_value(), "the hints are open");
  // The server would see a later end, and so how long the caller takes with the answers.
  remote_.close_connection();
  const auto start = steady_clock::now();
  const Layout& layout = database_->layout();
  const size_t key_count = look_up.keys.size();
  std::vector<Answer> answers(key_count + 1);  // the last is of all buckets without a key
  std::vector<std::pair<Request*, size_t>> places;
  for (Request& request : look_up.requests) {
    if (look_up.plan) request.decoder.emplace(std::move(request.secrets.front()));
    for (size_t i = 0; i < request.places.size(); ++i) places.emplace_back(&request, i);
  }
  SecretBuffer<uint32_t> shards(places.size());
  std::transform(places.begin(), places.end(), shards.span().begin(),
                 [](const auto& place) { return place.first->places[place.second].shard; });
  size_t done = 0;
  const auto use = [&](size_t p, std::span<const uint8_t> hint) {
    if (done++ % kQueriesPerRequest == 0) {
      report_progress(options_.progress, {ClientStage::kDecodingAnswers,
                                          (done - 1) * key_count / places.size(), key_count});
    }
    auto& [request, i] = places[p];
    const KeyPlace& place = request->places[i];
    const auto words = request->words[i].span();
    const std::vector<uint8_t> record =
        request->decoder ? decode(*request->decoder, layout, place.shard, words, hint)
                         : decode(std::move(request->secrets[i]), layout, place.shard, words, hint);
    answers[request->keys[i]].value = database_->value_in(record, place);
  };
  hints_->for_each(shards.span(), use, options_.progress);
  answers.pop_back();
  note_costs(look_up, seconds_since(start) / static_cast<double>(key_count), answers);
  return answers;
}

void Session::note_costs(const LookUp& look_up, double decode_seconds,
                         std::vector<Answer>& answers) const {
  const Layout& layout = database_->layout();
  // Of a query that asks for this many keys.
  const auto note = [&](Answer& answer, const Request& request, size_t query, uint32_t keys) {
    const auto share = [keys](uint64_t bytes) { return (bytes + keys - 1) / keys; };
    answer.query_bytes = share(layout.query_bytes());
    answer.response_bytes = share(layout.response_bytes());
    answer.request_keys = keys * static_cast<uint32_t>(request.secrets.size());
    answer.prepare_seconds = request.prepare_seconds[query] / keys;
    answer.server_seconds = request.server_seconds;
    answer.decode_seconds = decode_seconds;
    answer.total_seconds = answer.prepare_seconds + request.encrypt_seconds / answer.request_keys +
                           answer.server_seconds + answer.decode_seconds;
  };
  if (!look_up.plan) {
    for (const Request& request : look_up.requests) {
      for (size_t i = 0; i < request.keys.size(); ++i) {
        note(answers[request.keys[i]], request, i, 1);
      }
    }
    return;
  }
  const BatchPlan& plan = *look_up.plan;
  for (uint32_t key = 0; key < answers.size(); ++key) {
    const size_t request = plan.request_of(key);
    answers[key].asked = request < plan.request_count();
    if (!answers[key].asked) {
      answers[key].request_keys = 0;
      continue;
    }
    if (plan.first_of(key) != key) answers[key].value = answers[plan.first_of(key)].value;
    note(answers[key], look_up.requests[request], 0, plan.asked_in(request));
  }
}

void Session::check_keys(std::span<const std::string> keys) {
  for (const std::string& key : keys) database().check(key);
}

std::vector<Answer> Session::look_up(std::span<const std::string> keys) {
  if (keys.empty()) return {};
  const Deadline::Call call(deadline());
  check_keys(keys);  // all, before any is asked for
  LookUp look_up{.keys = keys};
  plan(look_up);
  while (look_up.queries_left() > 0) ask_some(look_up, look_up.queries_left());
  return deadline().stopped([&] { return decode_all(std::move(look_up)); });
}

size_t Session::begin_look_up(std::span<const std::string> keys) {
  drop_look_up();
  const Deadline::Call call(deadline());
  check_keys(keys);
  auto begun = std::make_shared<LookUp>(LookUp{.keys = keys});
  plan(*begun);
  begun_ = std::move(begun);
  return begun_->queries_left();
}

size_t Session::ask(size_t count) {
  invariant(begun_ != nullptr, "a look-up has begun");
  const Deadline::Call call(deadline());
  ask_some(*begun_, count);
  return begun_->queries_left();
}

std::vector<Answer> Session::end_look_up() {
  const Deadline::Call call(deadline());
  invariant(begun_ && begun_->queries_left() == 0 && begun_->epoch == database_->epoch(),
            "all keys have been asked for");
  const std::shared_ptr<LookUp> ended = std::move(begun_);
  if (ended->keys.empty()) return {};
  open_hints();  // a synchronization after the last request has closed them
  return decode_all(std::move(*ended));
}

void Session::drop_look_up() { begun_.reset(); }

std::vector<std::optional<std::string>> values_of(std::vector<Answer> answers) {
  const auto left_out = std::count_if(answers.begin(), answers.end(),
                                      [](const Answer& answer) { return !answer.asked; });
  if (left_out > 0) throw NotAskedError(static_cast<size_t>(left_out), answers.size());
  std::vector<std::optional<std::string>> values;
  values.reserve(answers.size());
  for (Answer& answer : answers) values.push_back(std::move(answer.value));
  return values;
}

std::vector<std::optional<std::string>> Session::get_many(std::span<const std::string> keys) {
  return values_of(look_up(keys));
}

std::optional<std::string> Session::get(std::string_view key) {
  KeyCopies one(1);
  one.add(key);
  return std::move(get_many(one.span()).front());
}

}  // namespace blindfuse
