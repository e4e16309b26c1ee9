// Look-ups where requests are for several keys, from keys to their values.
#include <blindfuse/errors.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "client/ring_query.h"
#include "client/session.h"
#include "client/shared_session.h"
#include "tests/client/client_testing.h"
#include "tests/client/look_ups.h"
#include "tests/client/packed_database.h"

namespace blindfuse {
namespace {

using Database = BatchDatabase;
constexpr size_t kKeys = Database::kKeysPerRequest;

// 40 keys whose values are of any bytes, one whose value is empty, and four with the same buckets.
KeyValues some_values() {
  std::mt19937 random(23);
  KeyValues values;
  for (int i = 0; i < 40; ++i) {
    std::string value(Database::kValueBytes - random() % 40, '\0');
    for (char& c : value) c = static_cast<char>(random());
    values["key-" + std::to_string(i)] = value;
  }
  values["empty"] = "";
  for (const std::string& key : Database::keys_of_buckets({1, 3, 4}, 4)) values[key] = "of " + key;
  return values;
}

class BatchSessionTest : public FakeServerTest {
 protected:
  BatchSessionTest() : FakeServerTest(Database::serve(some_values())) {}

  const KeyValues values_ = some_values();

  std::vector<std::string> present(size_t count) const {
    std::vector<std::string> keys;
    for (const auto& [key, value] : values_) {
      if (keys.size() < count) keys.push_back(key);
    }
    return keys;
  }

  // That each request since `first` is one query, and how many there are.
  size_t requests(size_t first = 0) const {
    const auto asked = server_.seen("/queries");
    for (const SeenRequest& request : asked) {
      EXPECT_EQ(request.body.size(), Database::kQueryBytes);
    }
    return asked.size() - first;
  }
};

TEST_F(BatchSessionTest, GetsTheValuesOfAllKeys) {
  Session session = this->session();
  std::vector<std::string> keys = present(values_.size());
  keys.insert(keys.begin() + 5, "no such key");
  const std::vector<Answer> answers = answers_of(session, keys);
  ASSERT_EQ(answers.size(), keys.size());
  size_t asked = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    asked += answers[i].asked ? 1 : 0;
    if (!answers[i].asked) continue;
    const auto found = values_.find(keys[i]);
    if (found == values_.end()) {
      EXPECT_EQ(answers[i].value, std::nullopt) << keys[i];
    } else {
      EXPECT_EQ(answers[i].value, found->second) << keys[i];
    }
  }
  EXPECT_GE(asked + 2, keys.size());
  EXPECT_EQ(requests(), (keys.size() + kKeys - 1) / kKeys);
  EXPECT_EQ(server_.count("/hint?"), 1u);
}

TEST_F(BatchSessionTest, GetsOneKey) {
  Session session = this->session();
  EXPECT_EQ(value_of(session, "key-7"), values_.at("key-7"));
  EXPECT_EQ(value_of(session, "empty"), "");
  EXPECT_EQ(value_of(session, "no such key"), std::nullopt);
  EXPECT_EQ(requests(), 3u);
}

TEST_F(BatchSessionTest, RequestsDependOnTheNumberOfKeysAlone) {
  const std::vector<std::string> colliding = Database::keys_of_buckets({0, 1, 2}, kKeys + 1);
  const std::vector<std::string> same(kKeys + 1, "key-3");
  std::vector<std::string> absent;
  for (size_t i = 0; i <= kKeys; ++i) absent.push_back("absent " + std::to_string(i));
  for (const std::vector<std::string>& all : {present(kKeys + 1), absent, same, colliding}) {
    for (const size_t count : {size_t{0}, size_t{1}, kKeys, kKeys + 1}) {
      SCOPED_TRACE(all[0] + ", " + std::to_string(count));
      Session session = this->session();
      const size_t before = requests();
      const std::vector<Answer> answers = answers_of(session, std::span(all).first(count));
      EXPECT_EQ(answers.size(), count);
      EXPECT_EQ(requests(before), (count + kKeys - 1) / kKeys);
    }
  }
}

TEST_F(BatchSessionTest, AKeyThatComesAgainIsAskedForOnce) {
  Session session = this->session();
  const std::vector<std::string> keys = {"key-1", "key-2", "key-1", "key-1"};
  const auto values = values_of(session, keys);
  for (size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(values[i], values_.at(keys[i]));
  EXPECT_EQ(requests(), 1u);
  // Eight keys are two requests, even if there are two keys alone.
  std::vector<std::string> more(8, "empty");
  more[2] = "key-5";
  const std::vector<Answer> answers = answers_of(session, more);
  EXPECT_EQ(requests(), 3u);
  for (size_t i = 0; i < more.size(); ++i) EXPECT_EQ(answers[i].value, values_.at(more[i]));
}

TEST_F(BatchSessionTest, AKeyThatFoundNoBucketIsAskedForInTheNextRequest) {
  Session session = this->session();
  // The first request is to ask for four keys of three buckets, and the second one for the rest.
  std::vector<std::string> keys = Database::keys_of_buckets({1, 3, 4}, 5);
  const std::vector<std::string> others = Database::keys_of_buckets({0, 2, 5}, 3);
  keys.insert(keys.begin() + 4, others.begin(), others.end());
  ASSERT_EQ(keys.size(), 2 * kKeys);
  const std::vector<Answer> answers = answers_of(session, keys);
  for (const Answer& answer : answers) EXPECT_TRUE(answer.asked);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(answers[i].value, values_.at(keys[i])) << keys[i];
  for (size_t i = 4; i < keys.size(); ++i) EXPECT_EQ(answers[i].value, std::nullopt) << keys[i];
  EXPECT_EQ(answers[0].request_keys + answers[7].request_keys, 2 * kKeys);
  EXPECT_EQ(requests(), 2u);
}

TEST_F(BatchSessionTest, AKeyThatIsLeftOutIsNotTakenForOneThatIsNotThere) {
  Session session = this->session();
  const std::vector<std::string> keys = Database::keys_of_buckets({0, 2, 5}, kKeys);
  const std::vector<Answer> answers = answers_of(session, keys);
  const auto asked =
      std::ranges::count_if(answers, [](const Answer& answer) { return answer.asked; });
  EXPECT_EQ(asked, 3);
  for (const Answer& answer : answers) {
    EXPECT_EQ(answer.value, std::nullopt);
    EXPECT_EQ(answer.request_keys, answer.asked ? 3u : 0u);
    if (!answer.asked) {
      EXPECT_EQ(answer.query_bytes, 0u);
      EXPECT_EQ(answer.total_seconds, 0);
    }
  }
  try {
    values_of(session, keys);
    ADD_FAILURE() << "no error";
  } catch (const NotAskedError& error) {
    EXPECT_EQ(error.count(), 1u);
    EXPECT_EQ(std::string(error.what()),
              "1 of 4 keys was not asked for, as others took the places in the requests: ask "
              "for them with the keys of your next call");
  }
  EXPECT_EQ(requests(), 2u);
  // Half of them leave no key out.
  EXPECT_EQ(values_of(session, std::span(keys).first(2)).size(), 2u);
  EXPECT_EQ(values_of(session, std::span(keys).last(2)).size(), 2u);
}

TEST_F(BatchSessionTest, TheCostOfARequestIsDividedAmongItsKeys) {
  Session session = this->session();
  const std::vector<std::string> keys = {"key-1", "empty", "key-1"};
  for (const Answer& answer : answers_of(session, keys)) {
    EXPECT_TRUE(answer.asked);
    EXPECT_EQ(answer.request_keys, 3u);
    EXPECT_EQ(answer.query_bytes, (Database::kQueryBytes + 2) / 3);
    EXPECT_EQ(answer.response_bytes, (Database::kResponseBytes + 2) / 3);
    EXPECT_GT(answer.prepare_seconds, 0);
    EXPECT_GE(answer.total_seconds, answer.prepare_seconds + answer.server_seconds);
  }
  const std::vector<std::string> one = {"key-1"};
  EXPECT_EQ(answers_of(session, one)[0].query_bytes, Database::kQueryBytes);
}

TEST_F(BatchSessionTest, ARequestIsRepeatedWithAnotherQueryAndTheSameKeys) {
  Session session = this->session();
  const std::vector<std::string> keys = present(kKeys + 1);
  server_.errors = {FakeServer::error(503, "busy", 0)};
  const std::vector<Answer> answers = answers_of(session, keys);
  for (size_t i = 0; i < keys.size(); ++i) {
    if (answers[i].asked) {
      EXPECT_EQ(answers[i].value, values_.at(keys[i])) << keys[i];
    }
  }
  const auto asked = server_.seen("/queries");
  ASSERT_EQ(asked.size(), 3u);
  EXPECT_EQ(asked[0].body.size(), asked[1].body.size());
  EXPECT_NE(asked[0].body, asked[1].body);
}

// Queries for several keys are never smaller: there is nothing to divide.
TEST_F(BatchSessionTest, ARefusedRequestIsNotRepeated) {
  Session session = this->session();
  server_.errors = {FakeServer::error(413, "too large")};
  EXPECT_THROW(values_of(session, present(kKeys)), ServerError);
  EXPECT_EQ(requests(), 1u);
}

TEST_F(BatchSessionTest, PreparesRequests) {
  ClientOptions options = this->options();
  options.prepare_batch = 3;
  Session session = this->session(options);
  values_of(session, present(1));
  EXPECT_EQ(session.prepared_count(), 2u);
  answers_of(session, present(2 * kKeys));
  EXPECT_EQ(session.prepared_count(), 0u);
  options.prepare_batch = 0;
  Session other = this->session(options);
  answers_of(other, present(2 * kKeys));
  EXPECT_EQ(other.prepared_count(), 0u);
}

TEST_F(BatchSessionTest, ANewEpochMayHaveOtherBuckets) {
  Session session = this->session();
  EXPECT_EQ(value_of(session, "key-1"), values_.at("key-1"));
  session.prepare(2);
  server_.database = PackedDatabase::serve(values_);
  const std::vector<std::string> keys = present(kKeys + 1);
  auto values = values_of(session, keys);
  for (size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(values[i], values_.at(keys[i])) << keys[i];
  EXPECT_EQ(session.prepared_count(), 0u);
  EXPECT_EQ(session.keys_per_request(), kQueriesPerRequest);
  server_.database = Database::serve(values_);
  EXPECT_EQ(value_of(session, "key-2"), values_.at("key-2"));
  EXPECT_EQ(session.keys_per_request(), kKeys);
}

TEST_F(BatchSessionTest, HintsThatAreNotKeptAreReadForAllBucketsAlike) {
  ClientOptions options = this->options();
  options.hint_memory_bytes_max = 0;
  Session session = this->session(options);
  const std::vector<std::string> keys = {"key-1", "empty"};
  const auto values = values_of(session, keys);
  for (size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(values[i], values_.at(keys[i]));
}

// Every bucket of a request has a place; those without a key are not asked.
TEST_F(BatchSessionTest, PlacesOfTheBucketsOfARequest) {
  const ServedDatabase& served = server_.database;
  const DatabaseDescription database(served.manifest_text(), served.table());
  SecretBuffer<KeyHash> hashes(1);
  hashes[0] = database.hash("key-1");
  const BatchPlan plan(std::move(hashes), *database.layout().batch);
  SecretBuffer<KeyPlace> places(database.layout().bucket_count());
  SecretBuffer<uint32_t> keys(places.size());
  place_in_buckets(database, plan, 0, places.span(), keys.span());
  size_t asked = 0;
  for (uint32_t bucket = 0; bucket < places.size(); ++bucket) {
    EXPECT_EQ(places[bucket].shard / Database::kBucketShards, bucket);
    EXPECT_EQ(places[bucket].asks, keys[bucket] == 0 ? 1u : 0u) << bucket;
    asked += places[bucket].asks;
  }
  EXPECT_EQ(asked, 1u);
}

TEST_F(BatchSessionTest, ClientsOfSeveralThreadsGetValues) {
  SharedSession shared([this](auto) { return std::make_unique<FakeTransport>(server_); },
                       "http://test", options(), {});
  const std::vector<std::string> keys = {"key-1", "key-2"};
  const std::vector<Answer> answers = shared.look_up(copies_of(keys), KeyForm::kAny, {});
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[1].value, values_.at("key-2"));
  EXPECT_EQ(requests(), 1u);
}

}  // namespace
}  // namespace blindfuse
