// A database of packed responses over HTTP: its masks, and queries with packing keys.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

#include "tests/server/packed_database.h"
#include "tests/server/running_server.h"

namespace blindfuse::server_testing {
namespace {

using support::as_bytes;

constexpr size_t kKeyWords = kKeysBytes / 4;
constexpr uint32_t kModulus = 4'294'955'009;

class PackedRoutes : public RunningServer {
 protected:
  explicit PackedRoutes(LoadedDatabase (*made)() = packed_database)
      : RunningServer(made()), made_(made) {}
  void SetUp() override { start(); }
  std::shared_ptr<const ServingEpoch> make_epoch(const BatchLimits& limits) override {
    return std::make_shared<const ServingEpoch>(made_(), limits, metrics_.get());
  }

  HttpResponse get(const std::string& rest, const std::string& headers = "") {
    return ask(get_request(epoch_path(rest), headers));
  }
  std::string masks(uint32_t first, uint32_t last) const {
    return hints_of(database_, first, last);
  }
  std::string binary(const std::vector<std::string>& queries) const {
    std::string all;
    for (const std::string& query : queries) all += query;
    return binary_request(all);
  }
  std::string json(const std::vector<std::string>& queries) const {
    auto list = nlohmann::json::array();
    for (const std::string& query : queries) list.push_back(base64_of(query));
    return json_request(nlohmann::json{{"queries", list}}.dump());
  }
  void expect_malformed(const std::string& request, const std::string& detail) {
    const HttpResponse response = ask(request);
    expect_problem(response, 400, "malformed-queries");
    EXPECT_EQ(response.detail(), detail);
  }
  // As the only query, binary, and as the second one, in JSON.
  void expect_wrong_length(const std::string& query, size_t expected) {
    const auto base64 = [](size_t bytes) { return std::to_string((bytes + 2) / 3 * 4); };
    expect_malformed(binary({query}), "the body has " + std::to_string(query.size()) +
                                          " bytes; expected 1 to 3 queries of " +
                                          std::to_string(expected) + " bytes each");
    if (base64(query.size()) == base64(expected)) return;
    expect_malformed(json({std::string(expected, '\0'), query}),
                     "query 2 has " + base64(query.size()) + " base64 characters; expected " +
                         base64(expected) + " for " + std::to_string(expected) + " bytes");
  }
  static std::string refusal_of_word(size_t place, uint32_t word) {
    return "word " + std::to_string(place) + " of the packing key is " + std::to_string(word) +
           ", and has to be below 4294955009";
  }

 private:
  LoadedDatabase (*const made_)();
};

TEST_F(PackedRoutes, AnswersQueriesWithTheirKeys) {
  const std::vector<std::string> queries = {packed_query(0), packed_query(1), packed_query(2)};
  ASSERT_EQ(queries[0].size(), 7'168u + 24'576);
  // Worked out before there is a connection, which a server does not keep forever.
  const std::vector<std::string> expected = {packed_response(0), packed_response(1),
                                             packed_response(2)};
  HttpResponse response = ask(binary(queries));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.header("content-type"), "application/octet-stream");
  EXPECT_TRUE(response.body == expected[0] + expected[1] + expected[2]);
  response = ask(json({queries[2], queries[0]}));
  EXPECT_EQ(response.status, 200);
  const auto list = nlohmann::json::parse(response.body).at("responses");
  ASSERT_EQ(list.size(), 2u);
  EXPECT_TRUE(list[0] == base64_of(expected[2]));
  EXPECT_TRUE(list[1] == base64_of(expected[0]));
}

TEST_F(PackedRoutes, RefusesKeyWordsThatAreNotBelowTheModulus) {
  const std::string good = packed_query(1);
  for (const size_t place : {size_t{0}, size_t{5'000}, kKeyWords - 1}) {
    for (const uint32_t word : {kModulus, UINT32_MAX}) {
      PackedQuery bad(2);
      bad.set_key_word(place, word);
      expect_malformed(binary({bad.bytes()}), "query 1: " + refusal_of_word(place, word));
      expect_malformed(json({good, bad.bytes(), good}), "query 2: " + refusal_of_word(place, word));
    }
  }
  PackedQuery largest(2);
  largest.set_key_word(0, kModulus - 1);
  largest.set_key_word(kKeyWords - 1, kModulus - 1);
  const HttpResponse response = ask(binary({largest.bytes()}));
  EXPECT_EQ(response.status, 200);
  EXPECT_TRUE(response.body == packed_response(largest));
}

// As in the mode of hints, and anything else that is not a whole query.
TEST_F(PackedRoutes, RefusesQueriesWithoutTheirKeys) {
  const std::string query = packed_query(0);
  for (const size_t length : {size_t{7'168}, size_t{24'576}, query.size() - 1, query.size() + 1,
                              2 * query.size() - 24'576}) {
    expect_wrong_length((query + query).substr(0, length), query.size());
  }
}

LoadedDatabase two_level_database(uint32_t key_order) {
  LoadedDatabase database = packed_database();
  database.manifest.layout.second = SecondLevel{.group_shards = 2,
                                                .query_bits = 25,
                                                .mask_bits = 19,
                                                .response_bits = 13,
                                                .key_order = key_order};
  database.epoch = epoch_id(database.manifest);
  return database;
}

// Three groups of two shards, 500 columns wide, and a short key.
class TwoLevelRoutes : public PackedRoutes {
 protected:
  explicit TwoLevelRoutes(LoadedDatabase (*made)() = [] { return two_level_database(512); })
      : PackedRoutes(made) {}

  // Its words and its key, its short key, and 3 * 25 bits of numbers for groups.
  static std::string query(const PackedQuery& first, const PackedQuery& second,
                           const std::string& numbers = std::string(9, '\x5a') + '\x05') {
    return first.bytes() + second.keys + numbers;
  }
};

TEST_F(TwoLevelRoutes, AnswersWithMasksAndTheWordsOfAGroup) {
  const std::string one = query(PackedQuery(1), PackedQuery(2));
  ASSERT_EQ(one.size(), 7'168u + 24'576 + 24'576 + 10);
  const HttpResponse response = ask(binary({one, query(PackedQuery(3), PackedQuery(2)), one}));
  EXPECT_EQ(response.status, 200);
  // 2048 * 19 / 8 of a mask, and 500 * 13 / 8.
  constexpr size_t kEach = 4'864 + 813;
  ASSERT_EQ(response.body.size(), 3 * kEach);
  EXPECT_TRUE(response.body.substr(0, kEach) == response.body.substr(2 * kEach));
  EXPECT_FALSE(response.body.substr(0, kEach) == response.body.substr(kEach, kEach));
}

TEST_F(TwoLevelRoutes, RefusesWordsOfEitherKeyThatAreNotBelowTheModulus) {
  const std::string good = query(PackedQuery(1), PackedQuery(2));
  for (const size_t place : {size_t{0}, kKeyWords - 1}) {
    PackedQuery bad(3);
    bad.set_key_word(place, kModulus);
    const std::string what = refusal_of_word(place, kModulus);
    expect_malformed(binary({query(bad, PackedQuery(2))}), "query 1: " + what);
    expect_malformed(json({good, query(bad, PackedQuery(2))}), "query 2: " + what);
    expect_malformed(binary({good, query(PackedQuery(1), bad)}), "query 2: the short key: " + what);
    expect_malformed(json({query(PackedQuery(1), bad), good}), "query 1: the short key: " + what);
    bad.set_key_word(place, kModulus - 1);
    EXPECT_EQ(ask(binary({query(bad, bad)})).status, 200);
  }
}

// Nothing in a query says what follows, so that its length alone tells that a part is missing or
// is there twice. A key of another order is as long as this one, and is a key like any other.
TEST_F(TwoLevelRoutes, RefusesQueriesWithPartsMissingOrTwice) {
  const PackedQuery first(1), second(2);
  const std::string numbers = std::string(9, '\x5a') + '\x05';
  const std::vector<std::string> wrong = {
      first.bytes() + second.keys,                          // no numbers for groups
      first.bytes() + second.keys + numbers.substr(1),      // not all of them
      first.bytes() + second.keys + numbers + numbers,      // twice
      first.bytes() + numbers,                              // no short key
      first.bytes() + second.keys + second.keys + numbers,  // twice
      first.bytes(),                                        // as with one level
  };
  for (const std::string& bad : wrong) expect_wrong_length(bad, 56'330);
}

TEST_F(TwoLevelRoutes, RefusesNumbersForGroupsThatAreTooLong) {
  const std::string good = query(PackedQuery(1), PackedQuery(2));
  for (const char bits : {'\x08', '\x80'}) {
    const std::string bad = query(PackedQuery(1), PackedQuery(2), std::string(9, '\x5a') + bits);
    expect_malformed(binary({good, bad}),
                     "query 2: the padding bits of the second-level query are not zero");
  }
}

// The same groups without a short key.
class TwoLevelRoutesWithOneKey : public TwoLevelRoutes {
 protected:
  TwoLevelRoutesWithOneKey() : TwoLevelRoutes([] { return two_level_database(0); }) {}
};

TEST_F(TwoLevelRoutesWithOneKey, RefusesAShortKeyThatNobodyAskedFor) {
  expect_wrong_length(query(PackedQuery(1), PackedQuery(2)), 31'754);
}

TEST_F(PackedRoutes, GivesTheTableOfShardsAndPacks) {
  const HttpResponse response = get("/shards");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body.size(), 5u * 112 + 2 * 64);
  for (uint32_t pack = 0; pack < 2; ++pack) {
    const std::string whole = masks(pack, pack);
    const Sha256Digest mask = sha256(as_bytes(whole));
    EXPECT_EQ(response.body.substr(5 * 112 + pack * 64 + 32, 32),
              std::string(mask.begin(), mask.end()));
  }
}

// downloads_test.cpp has all that is the same of hints.
TEST_F(PackedRoutes, GivesTheMasksThatAreAskedFor) {
  EXPECT_EQ(get("/hint").body.size(), 2u * 4'608);
  EXPECT_EQ(get("/hint").body, masks(0, 1));
  EXPECT_EQ(get("/hint?packs=0-1").header("etag"), get("/hint").header("etag"));
  EXPECT_NE(get("/hint?packs=1").header("etag"), get("/hint").header("etag"));
  const std::string whole = masks(1, 1) + masks(0, 0);
  const HttpResponse response = get("/hint?packs=1,0", "Range: bytes=4600-4615\r\n");
  EXPECT_EQ(response.status, 206);
  EXPECT_EQ(response.body, whole.substr(4'600, 16)) << "of both";
  EXPECT_EQ(response.header("content-range"), "bytes 4600-4615/9216");
}

TEST_F(PackedRoutes, AreAsTheDocumentSays) {
  const auto document = nlohmann::json::parse(ask(get_request("/openapi.json")).body);
  for (const char* method : {"get", "head"}) {
    EXPECT_EQ(hint_parameters(document, method), std::vector<std::string>{"packs"}) << method;
  }
  const auto& queries = document.at("components").at("schemas").at("BinaryQueries");
  EXPECT_EQ(queries.at("minLength"), packed_query(0).size());
}

TEST_F(PackedRoutes, RefusesPacksThatAreNoneAndShards) {
  const auto detail_of = [&](const std::string& rest) {
    const HttpResponse response = get("/hint?" + rest);
    expect_problem(response, 400, "malformed-shards");
    return response.detail();
  };
  // There are five shards, and two packs.
  EXPECT_EQ(detail_of("packs=0,1-4"), "part 2 of packs goes beyond the last pack, 1");
  for (const char* rest : {"shards=0", "packs=0&shards=0", "shards=0&packs=0", "pack=0"}) {
    EXPECT_EQ(detail_of(rest), "the only parameter of this database's hint is packs");
  }
}

// A query for several keys has the bytes of as many.
LoadedDatabase database_for_several_keys() {
  LoadedDatabase database = packed_database();
  database.manifest.layout.batch = BatchCode{2, kPackedShards};
  return database;
}

TEST(QueryLimits, AreTheOptionsOrTheUsualOnes) {
  const auto most = [](LoadedDatabase database, size_t queue_max, std::optional<uint64_t> asked) {
    const ServingEpoch epoch(std::move(database), {.batch_max = 4, .queue_max = queue_max});
    ApiOptions options;
    options.queries_per_request_max = asked;
    return query_limits(epoch, options).query_count_max;
  };
  EXPECT_EQ(most(packed_database(), 100, std::nullopt), 16u);
  EXPECT_EQ(most(packed_database(), 8, std::nullopt), 8u);
  EXPECT_EQ(most(packed_database(), 100, 3), 3u);
  EXPECT_EQ(most(database_for_several_keys(), 100, std::nullopt), 1u);
  EXPECT_EQ(most(database_for_several_keys(), 100, 3), 3u);
}

class QueriesForSeveralKeys : public PackedRoutes {
 protected:
  QueriesForSeveralKeys() : PackedRoutes(database_for_several_keys) {}
};

TEST_F(QueriesForSeveralKeys, HaveTheLimitsOfTheEpochOnAServerWithoutTheOption) {
  start(ServerOptions{});
  const uint64_t bytes = database_.manifest.layout.query_bytes();
  // Zeros are words and keys.
  EXPECT_EQ(ask(binary_request(std::string(bytes, '\0'))).status, 200);
  EXPECT_EQ(ask(binary_request(std::string(2 * bytes, '\0'))).status, 413);
  const auto document = nlohmann::json::parse(ask(get_request("/openapi.json")).body);
  const auto& schemas = document.at("components").at("schemas");
  EXPECT_EQ(schemas.at("BinaryQueries").at("maxLength"), bytes);
  EXPECT_EQ(schemas.at("Queries").at("properties").at("queries").at("maxItems"), 1);
}

}  // namespace
}  // namespace blindfuse::server_testing
