// A database of packed responses over HTTP: its masks, and queries with packing keys.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "host/server/database_server.h"
#include "src/base/base64.h"
#include "tests/server/loopback_client.h"
#include "tests/server/packed_database.h"

namespace blindfuse::server_testing {
namespace {

using support::as_bytes;
using ::testing::HasSubstr;

constexpr size_t kKeyWords = kKeysBytes / 4;
constexpr uint32_t kModulus = 4'294'955'009;

std::string json_of(const std::vector<std::string>& queries) {
  auto list = nlohmann::json::array();
  for (const std::string& query : queries) list.push_back(encode_base64(as_bytes(query)));
  return nlohmann::json{{"queries", list}}.dump();
}

std::string joined(const std::vector<std::string>& queries) {
  std::string all;
  for (const std::string& query : queries) all += query;
  return all;
}

class PackedRoutes : public ::testing::Test {
 protected:
  virtual LoadedDatabase made_database() const { return packed_database(); }
  void SetUp() override {
    const BatchLimits limits{.batch_max = 4, .queue_max = 8};
    epochs_ = std::make_unique<ServedEpochs>(
        std::make_shared<const ServingEpoch>(made_database(), limits, &metrics_));
    ServerOptions options;
    options.http.threads = 2;
    options.api.queries_per_request_max = 3;
    server_ = std::make_unique<DatabaseServer>(
        *epochs_, metrics_, http::ListeningSocket(http::ListenAddress{}), options);
  }

  const LoadedDatabase& database() const { return epochs_->current()->database(); }
  std::string path(const std::string& rest) const {
    return "/v1/epochs/" + database().epoch + rest;
  }
  HttpResponse get(const std::string& rest, const std::string& headers = "") const {
    return LoopbackClient(server_->url()).ask(get_request(path(rest), headers));
  }
  std::string masks(uint32_t first, uint32_t last) const {
    return hints_of(database(), first, last);
  }
  std::string binary(const std::vector<std::string>& queries) const {
    return post_request(path("/queries"), "application/octet-stream", joined(queries));
  }
  std::string json(const std::vector<std::string>& queries) const {
    return post_request(path("/queries"), "application/json", json_of(queries));
  }

  // Refused after the body was read; and the next query on the same connection is answered.
  void expect_malformed(const std::string& request, const std::string& detail) const {
    LoopbackClient client(server_->url());
    const HttpResponse response = client.ask(request);
    EXPECT_EQ(response.status, 400);
    EXPECT_EQ(response.problem(), "malformed-queries");
    EXPECT_EQ(response.detail(), detail);
    const HttpResponse next = client.ask(binary({packed_query(0)}));
    EXPECT_EQ(next.status, 200);
    EXPECT_TRUE(next.body == packed_response(0));
  }

  ServerMetrics metrics_;
  std::unique_ptr<ServedEpochs> epochs_;
  std::unique_ptr<DatabaseServer> server_;
};

TEST_F(PackedRoutes, AnswersQueriesWithTheirKeys) {
  const std::vector<std::string> queries = {packed_query(0), packed_query(1), packed_query(2)};
  ASSERT_EQ(queries[0].size(), 7'168u + 24'576);
  // Worked out before there is a connection, which a server does not keep forever.
  const std::vector<std::string> expected = {packed_response(0), packed_response(1),
                                             packed_response(2)};
  LoopbackClient client(server_->url());
  HttpResponse response = client.ask(binary(queries));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.header("content-type"), "application/octet-stream");
  EXPECT_TRUE(response.body == expected[0] + expected[1] + expected[2]);
  response = client.ask(json({queries[2], queries[0]}));
  EXPECT_EQ(response.status, 200);
  const auto list = nlohmann::json::parse(response.body).at("responses");
  ASSERT_EQ(list.size(), 2u);
  EXPECT_TRUE(list[0] == encode_base64(as_bytes(expected[2])));
  EXPECT_TRUE(list[1] == encode_base64(as_bytes(expected[0])));
}

TEST_F(PackedRoutes, RefusesKeyWordsThatAreNotBelowTheModulus) {
  const auto detail = [](int query, size_t place, uint32_t word) {
    return "query " + std::to_string(query) + ": word " + std::to_string(place) +
           " of the packing key is " + std::to_string(word) + ", and has to be below 4294955009";
  };
  const std::string good = packed_query(1);
  for (const size_t place : {size_t{0}, size_t{5'000}, kKeyWords - 1}) {
    for (const uint32_t word : {kModulus, UINT32_MAX}) {
      SCOPED_TRACE(std::to_string(place) + " is " + std::to_string(word));
      PackedQuery bad(2);
      bad.set_key_word(place, word);
      expect_malformed(binary({bad.bytes()}), detail(1, place, word));
      expect_malformed(json({bad.bytes()}), detail(1, place, word));
      expect_malformed(binary({good, bad.bytes()}), detail(2, place, word));
      expect_malformed(json({good, bad.bytes(), good}), detail(2, place, word));
    }
  }
  PackedQuery largest(2);
  largest.set_key_word(0, kModulus - 1);
  largest.set_key_word(kKeyWords - 1, kModulus - 1);
  const HttpResponse response = LoopbackClient(server_->url()).ask(binary({largest.bytes()}));
  EXPECT_EQ(response.status, 200);
  EXPECT_TRUE(response.body == packed_response(largest));
}

// As in the mode of hints, and anything else that is not a whole query.
TEST_F(PackedRoutes, RefusesQueriesWithoutTheirKeys) {
  const std::string query = packed_query(0);
  for (const size_t length : {size_t{7'168}, size_t{24'576}, query.size() - 1, query.size() + 1,
                              2 * query.size() - 24'576}) {
    const std::string body = (query + query).substr(0, length);
    LoopbackClient client(server_->url());
    const HttpResponse response =
        client.ask(post_request(path("/queries"), "application/octet-stream", body));
    EXPECT_EQ(response.status, 400) << length;
    EXPECT_EQ(response.problem(), "malformed-queries");
    EXPECT_EQ(response.detail(), "the body has " + std::to_string(length) +
                                     " bytes; expected 1 to 3 queries of 31744 bytes each");
  }
  expect_malformed(json({query.substr(0, 7'168)}),
                   "query 1 has 9560 base64 characters; expected 42328 for 31744 bytes");
  expect_malformed(json({query, query.substr(0, 7'168)}),
                   "query 2 has 9560 base64 characters; expected 42328 for 31744 bytes");
}

// Three groups of two shards, 500 columns wide, and a short key.
class TwoLevelRoutes : public PackedRoutes {
 protected:
  LoadedDatabase made_database() const override {
    LoadedDatabase database = packed_database();
    database.manifest.layout.second = SecondLevel{.group_shards = 2,
                                                  .query_bits = 25,
                                                  .mask_bits = 19,
                                                  .response_bits = 13,
                                                  .key_order = 512};
    database.epoch = epoch_id(database.manifest);
    return database;
  }

  // Its words and its key, its short key, and 3 * 25 bits of numbers for groups.
  static std::string query(const PackedQuery& first, const PackedQuery& second,
                           const std::string& numbers = std::string(9, '\x5a') + '\x05') {
    return first.bytes() + second.keys + numbers;
  }

  HttpResponse ask(const std::vector<std::string>& queries) const {
    return LoopbackClient(server_->url()).ask(binary(queries));
  }
  void expect_refused(const std::vector<std::string>& queries, const std::string& detail) const {
    const HttpResponse response = ask(queries);
    EXPECT_EQ(response.status, 400);
    EXPECT_EQ(response.problem(), "malformed-queries");
    EXPECT_EQ(response.detail(), detail);
  }
};

TEST_F(TwoLevelRoutes, AnswersWithMasksAndTheWordsOfAGroup) {
  const std::string one = query(PackedQuery(1), PackedQuery(2));
  ASSERT_EQ(one.size(), 7'168u + 24'576 + 24'576 + 10);
  const HttpResponse response = ask({one, query(PackedQuery(3), PackedQuery(2)), one});
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
    const std::string what = "word " + std::to_string(place) +
                             " of the packing key is 4294955009, and has to be below 4294955009";
    expect_refused({query(bad, PackedQuery(2))}, "query 1: " + what);
    expect_refused({query(PackedQuery(1), bad)}, "query 1: the short key: " + what);
    expect_refused({good, query(PackedQuery(1), bad)}, "query 2: the short key: " + what);
    bad.set_key_word(place, kModulus - 1);
    EXPECT_EQ(ask({query(bad, bad)}).status, 200);
  }
}

TEST_F(TwoLevelRoutes, RefusesWordsOfEitherKeyInJsonToo) {
  const std::string good = query(PackedQuery(1), PackedQuery(2));
  PackedQuery bad(3);
  bad.set_key_word(5'000, UINT32_MAX);
  const std::string what =
      "word 5000 of the packing key is 4294967295, and has to be below 4294955009";
  for (const auto& [request, detail] :
       {std::pair{json({good, query(bad, PackedQuery(2))}), "query 2: " + what},
        std::pair{json({query(PackedQuery(1), bad), good}), "query 1: the short key: " + what}}) {
    const HttpResponse response = LoopbackClient(server_->url()).ask(request);
    EXPECT_EQ(response.status, 400);
    EXPECT_EQ(response.problem(), "malformed-queries");
    EXPECT_EQ(response.detail(), detail);
  }
}

// Nothing in a query says what follows, so that its length alone tells that a part is missing or
// is there twice. A key of another order is as long as this one, and is a key like any other.
TEST_F(TwoLevelRoutes, RefusesQueriesWithPartsMissingOrTwice) {
  const PackedQuery first(1), second(2);
  const std::string numbers = std::string(9, '\x5a') + '\x05';
  const std::string good = query(first, second, numbers);
  const std::vector<std::string> wrong = {
      first.bytes() + second.keys,                          // no numbers for groups
      first.bytes() + second.keys + numbers + numbers,      // twice
      first.bytes() + numbers,                              // no short key
      first.bytes() + second.keys + second.keys + numbers,  // twice
      first.bytes(),                                        // as with one level
  };
  for (const std::string& bad : wrong) {
    SCOPED_TRACE(std::to_string(bad.size()) + " bytes");
    expect_refused({bad}, "the body has " + std::to_string(bad.size()) +
                              " bytes; expected 1 to 3 queries of 56330 bytes each");
    const HttpResponse response = LoopbackClient(server_->url()).ask(json({good, bad}));
    EXPECT_EQ(response.status, 400);
    EXPECT_EQ(response.problem(), "malformed-queries");
    EXPECT_EQ(response.detail(), "query 2 has " + std::to_string((bad.size() + 2) / 3 * 4) +
                                     " base64 characters; expected 75108 for 56330 bytes");
  }
}

TEST_F(TwoLevelRoutes, RefusesNumbersForGroupsThatAreTooLong) {
  const std::string good = query(PackedQuery(1), PackedQuery(2));
  for (const char bits : {'\x08', '\x80'}) {
    const std::string bad = query(PackedQuery(1), PackedQuery(2), std::string(9, '\x5a') + bits);
    expect_refused({good, bad}, "query 2: the padding bits of the second-level query are not zero");
  }
  for (const size_t length : {good.size() - 1, good.size() - 10, good.size() - 24'576}) {
    expect_refused({good.substr(0, length)},
                   "the body has " + std::to_string(length) +
                       " bytes; expected 1 to 3 queries of 56330 bytes each");
  }
}

// The same groups without a short key.
class TwoLevelRoutesWithOneKey : public TwoLevelRoutes {
 protected:
  LoadedDatabase made_database() const override {
    LoadedDatabase database = TwoLevelRoutes::made_database();
    database.manifest.layout.second->key_order = 0;
    database.epoch = epoch_id(database.manifest);
    return database;
  }
};

TEST_F(TwoLevelRoutesWithOneKey, RefusesAShortKeyThatNobodyAskedFor) {
  const std::string long_query = query(PackedQuery(1), PackedQuery(2));
  ASSERT_EQ(long_query.size(), 31'754u + 24'576);
  expect_refused({long_query},
                 "the body has 56330 bytes; expected 1 to 3 queries of 31754 bytes each");
  const HttpResponse response = LoopbackClient(server_->url()).ask(json({long_query}));
  EXPECT_EQ(response.status, 400);
  EXPECT_EQ(response.detail(),
            "query 1 has 75108 base64 characters; expected 42340 for 31754 bytes");
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

TEST_F(PackedRoutes, GivesTheMasksThatAreAskedFor) {
  EXPECT_EQ(get("/hint").body.size(), 2u * 4'608);
  EXPECT_EQ(get("/hint").body, masks(0, 1));
  EXPECT_EQ(get("/hint?packs=0-1").body, masks(0, 1));
  EXPECT_EQ(get("/hint?packs=0").body, masks(0, 0));
  EXPECT_EQ(get("/hint?packs=00").body, masks(0, 0)) << "a number may begin with zeros";
  EXPECT_EQ(get("/hint?packs=1,0").body, masks(1, 1) + masks(0, 0));
  EXPECT_EQ(get("/hint?packs=1%2C0").body, masks(1, 1) + masks(0, 0));
  EXPECT_EQ(get("/hint?packs=0-1").header("etag"), get("/hint").header("etag"));
  EXPECT_NE(get("/hint?packs=1").header("etag"), get("/hint").header("etag"));
  const HttpResponse response = get("/hint?packs=1");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.header("content-type"), "application/octet-stream");
  EXPECT_EQ(response.header("cache-control"), "public, max-age=31536000, immutable");
}

TEST_F(PackedRoutes, SendsRangesOfMasks) {
  const std::string whole = masks(1, 1) + masks(0, 0);
  const HttpResponse response = get("/hint?packs=1,0", "Range: bytes=4600-4615\r\n");
  EXPECT_EQ(response.status, 206);
  EXPECT_EQ(response.body, whole.substr(4'600, 16)) << "of both";
  EXPECT_EQ(response.header("content-range"), "bytes 4600-4615/9216");
  EXPECT_EQ(get("/hint?packs=1", "Range: bytes=-5\r\n").body, masks(1, 1).substr(4'603));
  EXPECT_EQ(get("/hint?packs=1", "Range: bytes=4608-\r\n").status, 416);
}

TEST_F(PackedRoutes, AreAsTheDocumentSays) {
  const auto request = get_request("/openapi.json");
  const auto document = nlohmann::json::parse(LoopbackClient(server_->url()).ask(request).body);
  for (const char* method : {"get", "head"}) {
    EXPECT_EQ(hint_parameters(document, method), std::vector<std::string>{"packs"}) << method;
  }
  const auto& queries = document.at("components").at("schemas").at("BinaryQueries");
  EXPECT_EQ(queries.at("minLength"), packed_query(0).size());
}

TEST_F(PackedRoutes, RefusesPacksThatAreNoneAndShards) {
  const auto detail_of = [&](const std::string& rest) {
    const HttpResponse response = get(rest);
    EXPECT_EQ(response.status, 400) << rest;
    EXPECT_EQ(response.problem(), "malformed-shards");
    return response.detail();
  };
  EXPECT_EQ(detail_of("/hint?packs=2"), "part 1 of packs goes beyond the last pack, 1");
  // There are five shards, and two packs.
  EXPECT_EQ(detail_of("/hint?packs=0,1-4"), "part 2 of packs goes beyond the last pack, 1");
  EXPECT_EQ(detail_of("/hint?packs=1,1"), "pack 1 is named twice");
  EXPECT_THAT(detail_of("/hint?packs="), HasSubstr("is not a pack or a range of packs"));
  EXPECT_EQ(detail_of("/hint?packs=0&packs=1"), "packs is given twice");
  for (const char* rest : {"/hint?shards=0", "/hint?shards=0-1", "/hint?packs=0&shards=0",
                           "/hint?shards=0&packs=0", "/hint?pack=0"}) {
    EXPECT_EQ(detail_of(rest), "the only parameter of this database's hint is packs");
  }
}

// A query for several keys has the bytes of as many.
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
  const auto several_keys = [] {
    LoadedDatabase database = packed_database();
    database.manifest.layout.batch = BatchCode{2, kPackedShards};
    return database;
  };
  EXPECT_EQ(most(several_keys(), 100, std::nullopt), 1u);
  EXPECT_EQ(most(several_keys(), 100, 3), 3u);
}

TEST(QueryLimits, AreThoseOfEachEpochForAServerWithoutTheOption) {
  ServerMetrics metrics;
  LoadedDatabase database = packed_database();
  database.manifest.layout.batch = BatchCode{2, kPackedShards};
  const ServedEpochs epochs(std::make_shared<const ServingEpoch>(
      std::move(database), BatchLimits{.batch_max = 4, .queue_max = 8}, &metrics));
  const DatabaseServer server(epochs, metrics, http::ListeningSocket(http::ListenAddress{}), {});
  const auto ask = [&](const std::string& request) {
    return LoopbackClient(server.url()).ask(request);
  };
  const uint64_t bytes = epochs.current()->layout().query_bytes();
  const auto queries = [&](size_t count) {
    // Zeros are words and keys.
    return post_request("/v1/epochs/" + epochs.current()->database().epoch + "/queries",
                        "application/octet-stream", std::string(count * bytes, '\0'));
  };
  EXPECT_EQ(ask(queries(1)).status, 200);
  EXPECT_EQ(ask(queries(2)).status, 413);
  const auto document = nlohmann::json::parse(ask(get_request("/openapi.json")).body);
  const auto& schemas = document.at("components").at("schemas");
  EXPECT_EQ(schemas.at("BinaryQueries").at("maxLength"), bytes);
  EXPECT_EQ(schemas.at("Queries").at("properties").at("queries").at("maxItems"), 1);
}

}  // namespace
}  // namespace blindfuse::server_testing
