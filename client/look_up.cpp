#include "client/look_up.h"

#include <blindfuse/errors.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "client/decoder.h"
#include "client/session.h"
#include "src/arithmetic/ring/ring_dimension.h"
#include "src/base/errors.h"
#include "src/base/release_memory.h"

namespace blindfuse {
namespace {

using std::chrono::steady_clock;

constexpr uint64_t kBytesMax = uint64_t{256} << 20;
// The largest secrets are those of a query in packed mode with a short key, or in hint mode.
constexpr uint64_t kSecretBytes = 4 * 2 * ring::kDimension;
// These are estimates: for a place, it and its pointers; for a key, its copy and its Answer.
constexpr uint64_t kPlaceBytes = 128, kKeyBytes = 1024;

}  // namespace

// A request: the keys that it asks for, and the secrets that decode its answers. It has the places
// of its queries, one after another: one for each bucket of the database, and so one alone if there
// are no buckets.
struct LookUp::Request {
  Request(const Layout& layout, size_t query_count)
      : places(query_count * layout.bucket_count()),
        keys(places.size()),
        body(query_count * layout.query_bytes()) {}

  SecretBuffer<KeyPlace> places;
  // The key of each place among those of the look-up. A bucket without a key has their number.
  SecretBuffer<uint32_t> keys;
  std::vector<DecodingSecret> secrets;  // of each query
  std::optional<RingDecoder> decoder;   // of the query, if it has several places
  std::vector<double> prepare_seconds;  // of each query
  std::vector<uint8_t> body;
  std::vector<SecretBuffer<uint32_t>> words;  // of each place, its shard's
  double encrypt_seconds = 0;
  double server_seconds = 0;
};

LookUp::LookUp(Session& session, std::span<const std::string_view> keys)
    : session_(session), keys_(keys) {
  const Deadline::Call call(session_.deadline());
  plan();
}

LookUp::~LookUp() = default;

size_t LookUp::queries_left() const {
  return (batch_ ? batch_->request_count() : keys_.size()) - queries_done_;
}

// Plans from the beginning, for the current database.
void LookUp::plan() {
  const DatabaseDescription& database = session_.database();
  epoch_.clear();  // until it is whole
  batch_.reset();
  requests_.clear();
  queries_done_ = 0;
  // All keys are hashed before the first request: how long that takes depends on their lengths.
  session_.deadline().stopped([&] {
    if (const auto& code = database.layout().batch) {
      SecretBuffer<KeyHash> hashes(keys_.size());
      for (size_t i = 0; i < keys_.size(); ++i) hashes[i] = database.hash(keys_[i]);
      batch_.emplace(std::move(hashes), *code);
    } else {
      places_ = SecretBuffer<KeyPlace>(keys_.size());
      for (size_t i = 0; i < keys_.size(); ++i) places_[i] = database.place(keys_[i]);
    }
  });
  epoch_ = database.epoch();
}

size_t LookUp::ask(size_t count) {
  const Deadline::Call call(session_.deadline());
  size_t end = 0;  // of the queries to be done
  // The number of times that the next request was sent already, always with other queries.
  int busy_count = 0;
  bool has_connected_anew = false;
  const auto begin_request = [&] {
    busy_count = 0;
    has_connected_anew = false;
  };
  const auto begin = [&] {
    const Layout& layout = session_.database().layout();
    const size_t more = std::min(count, queries_left());
    end = queries_done_ + more;
    session_.deadline().allow(more * (layout.query_bytes() + layout.response_bytes()));
  };
  if (epoch_ != session_.database().epoch()) plan();
  begin();
  while (queries_done_ < end) {
    session_.open_hints();  // before any query: what is wrong with one is found whatever the keys
    const size_t size = std::min(session_.request_size(), end - queries_done_);
    Request request = encrypt(size);
    try {
      send(request);
    } catch (const ServerBusyError& busy) {
      session_.remote_.wait_while_busy(busy, ++busy_count);
      continue;
    } catch (const KeptConnectionClosed&) {
      // The connection broke, perhaps before the server saw the request. A query is never sent
      // twice.
      if (std::exchange(has_connected_anew, true)) throw;
      continue;
    } catch (const EpochGoneError&) {
      if (has_synced_) throw;
      session_.sync();
      has_synced_ = true;
      // Answers of the previous epoch belong to hints that are gone.
      plan();
      begin();
      continue;
    } catch (const ServerError& refusal) {
      // The server takes fewer queries at a time than most: from now on each request has one.
      if (size == 1 || (refusal.status() != 413 && refusal.status() != 400)) throw;
      session_.queries_per_request_ = 1;
      begin_request();
      continue;
    }
    requests_.push_back(std::move(request));
    queries_done_ += size;
    begin_request();
  }
  return queries_left();
}

// A request of the first `count` queries that are left.
LookUp::Request LookUp::encrypt(size_t count) {
  session_.make_ready(count, queries_left());
  const DatabaseDescription& database = session_.database();
  const Layout& layout = database.layout();
  const auto start = steady_clock::now();
  Request request(layout, count);
  const auto piece = [](auto span, size_t i, size_t size) { return span.subspan(i * size, size); };
  for (size_t i = 0; i < count; ++i) {
    const size_t query = queries_done_ + i;
    const auto places = piece(request.places.span(), i, layout.bucket_count());
    const auto keys = piece(request.keys.span(), i, layout.bucket_count());
    if (batch_) {
      place_in_buckets(database, *batch_, query, places, keys);
    } else {
      places.front() = places_[query];
      keys.front() = static_cast<uint32_t>(query);
    }
    Session::Pooled pooled = std::move(session_.prepared_.front());
    session_.prepared_.pop_front();
    request.prepare_seconds.push_back(pooled.seconds);
    const auto bytes = piece(std::span(request.body), i, layout.query_bytes());
    request.secrets.push_back(std::move(pooled.query).encrypt(places, layout, bytes));
  }
  request.encrypt_seconds = seconds_since(start);
  return request;
}

void LookUp::send(Request& request) {
  const Layout& layout = session_.database().layout();
  const size_t count = request.secrets.size();
  const auto start = steady_clock::now();
  const std::vector<uint8_t> responses =
      session_.remote_.ask(epoch_, request.body, count * layout.response_bytes());
  request.server_seconds = seconds_since(start);
  release_memory(request.body);
  for (size_t i = 0; i < request.places.size(); ++i) {
    const size_t query = i / layout.bucket_count();
    const auto response =
        std::span(responses).subspan(query * layout.response_bytes(), layout.response_bytes());
    request.words.push_back(words_of_shard(layout, request.places[i].shard, response));
  }
}

std::vector<Answer> LookUp::decode() && {
  const Deadline::Call call(session_.deadline());
  if (keys_.empty()) return {};
  invariant(queries_left() == 0 && epoch_ == session_.database().epoch(),
            "all keys have been asked for");
  // The server would see a later end, and so how long the caller takes with the answers.
  session_.remote_.close_connection();
  session_.open_hints();  // a synchronization after the last request has closed them
  Answer none;
  none.request_keys = 0;
  none.asked = false;
  std::vector<Answer> answers(keys_.size() + 1, none);  // the last is of all buckets without a key
  session_.deadline().stopped([&] {
    const auto start = steady_clock::now();
    decode_values(answers);
    note_costs(seconds_since(start) / static_cast<double>(keys_.size()), answers);
  });
  answers.pop_back();
  if (batch_) {
    for (uint32_t key = 0; key < answers.size(); ++key) {
      if (batch_->first_of(key) != key) answers[key] = answers[batch_->first_of(key)];
    }
  }
  return answers;
}

void LookUp::decode_values(std::span<Answer> answers) {
  const DatabaseDescription& database = session_.database();
  std::vector<std::pair<Request*, size_t>> places;
  for (Request& request : requests_) {
    if (batch_) request.decoder.emplace(std::move(request.secrets.front()));
    for (size_t i = 0; i < request.places.size(); ++i) places.emplace_back(&request, i);
  }
  SecretBuffer<uint32_t> shards(places.size());
  std::transform(places.begin(), places.end(), shards.span().begin(),
                 [](const auto& place) { return place.first->places[place.second].shard; });
  const ProgressCallback& progress = session_.options_.progress;
  size_t done = 0;
  const auto use = [&](size_t p, std::span<const uint8_t> hint) {
    if (done++ % kQueriesPerRequest == 0) {
      report_progress(progress, {ClientStage::kDecodingAnswers,
                                 (done - 1) * keys_.size() / places.size(), keys_.size()});
    }
    auto& [request, i] = places[p];
    const KeyPlace& place = request->places[i];
    const auto words = request->words[i].span();
    const std::vector<uint8_t> record =
        request->decoder
            ? blindfuse::decode(*request->decoder, database.layout(), place.shard, words, hint)
            : blindfuse::decode(std::move(request->secrets[i]), database.layout(), place.shard,
                                words, hint);
    answers[request->keys[i]].value = database.value_in(record, place);
  };
  session_.hints_->for_each(shards.span(), use, progress);
}

void LookUp::note_costs(double decode_seconds, std::span<Answer> answers) const {
  const Layout& layout = session_.database().layout();
  for (size_t r = 0; r < requests_.size(); ++r) {
    const Request& request = requests_[r];
    const uint32_t keys = batch_ ? batch_->asked_in(r) : 1;  // of a query
    const auto share = [keys](uint64_t bytes) { return (bytes + keys - 1) / keys; };
    for (size_t i = 0; i < request.keys.size(); ++i) {
      if (request.keys[i] == keys_.size()) continue;
      Answer& answer = answers[request.keys[i]];
      answer.asked = true;
      answer.query_bytes = share(layout.query_bytes());
      answer.response_bytes = share(layout.response_bytes());
      answer.request_keys = keys * static_cast<uint32_t>(request.secrets.size());
      answer.prepare_seconds = request.prepare_seconds[i / layout.bucket_count()] / keys;
      answer.server_seconds = request.server_seconds;
      answer.decode_seconds = decode_seconds;
      answer.total_seconds = answer.prepare_seconds +
                             request.encrypt_seconds / answer.request_keys + answer.server_seconds +
                             answer.decode_seconds;
    }
  }
}

std::vector<std::optional<std::string>> values_of(std::vector<Answer> answers) {
  const auto left_out = std::count_if(answers.begin(), answers.end(),
                                      [](const Answer& answer) { return !answer.asked; });
  if (left_out > 0) throw NotAskedError(static_cast<size_t>(left_out), answers.size());
  std::vector<std::optional<std::string>> values;
  values.reserve(answers.size());
  for (Answer& answer : answers) values.push_back(std::move(answer.value));
  return values;
}

size_t queries_at_once(const Layout& layout) {
  const uint64_t each = std::max(layout.query_bytes(), layout.response_bytes());
  return std::clamp<uint64_t>(kBytesMax / each, 1, kQueriesPerRequest);
}

uint64_t keys_at_once(const Layout& layout) {
  const uint64_t keys = layout.batch ? layout.batch->keys_per_request : kQueriesPerRequest;
  const uint64_t queries = layout.batch ? 1 : kQueriesPerRequest;
  const uint64_t masks = layout.second ? layout.second_pack_count() * ring::kDimension : 0;
  const uint64_t place_bytes = kPlaceBytes + 4 * (layout.record_bytes() + masks);
  const uint64_t request_bytes = queries * (layout.bucket_count() * place_bytes + kSecretBytes) +
                                 keys * (kKeyBytes + layout.record.value_bytes);
  return keys * std::max<uint64_t>(1, kBytesMax / request_bytes);
}

}  // namespace blindfuse
