// What clients download, over HTTP: whole, in part, and not again.
#include "host/server/routes/downloads.h"

#include <gtest/gtest.h>

#include "src/base/hex.h"
#include "src/protocol/sha256.h"
#include "tests/server/running_server.h"

namespace blindfuse::server_testing {
namespace {

class DatabaseRoutes : public RunningServer {
 protected:
  void SetUp() override { start(); }

  HttpResponse get(const std::string& target, const std::string& headers = "") {
    return ask(get_request(target, headers));
  }

  std::string hints(uint32_t first, uint32_t last) const {
    return hints_of(database_, first, last);
  }
  std::string hint_path(const std::string& shards) const {
    return epoch_path("/hint?shards=" + shards);
  }
};

TEST_F(DatabaseRoutes, GivesTheManifest) {
  const HttpResponse response = get("/v1/database");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, database_.downloads->manifest_text);
  EXPECT_EQ(response.header("content-type"), "application/json");
  EXPECT_EQ(response.header("cache-control"), "no-cache");
  const std::string& text = database_.downloads->manifest_text;
  EXPECT_EQ(response.header("etag"),
            "\"" +
                encode_hex(sha256({reinterpret_cast<const uint8_t*>(text.data()), text.size()})) +
                "\"");
}

TEST_F(DatabaseRoutes, GivesTheShardTable) {
  const HttpResponse response = get(epoch_path("/shards"));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body,
            std::string(database_.downloads->table.begin(), database_.downloads->table.end()));
  EXPECT_EQ(response.body.size(), 112u * kShards);
  EXPECT_EQ(response.header("content-type"), "application/octet-stream");
  EXPECT_EQ(response.header("cache-control"), "public, max-age=31536000, immutable");
}

TEST_F(DatabaseRoutes, GivesTheHintsThatAreAskedFor) {
  EXPECT_EQ(get(epoch_path("/hint")).body, hints(0, 4));
  EXPECT_EQ(get(hint_path("0-4")).body, hints(0, 4));
  EXPECT_EQ(get(hint_path("2")).body, hints(2, 2));
  EXPECT_EQ(get(hint_path("3-4,0,1-2")).body, hints(3, 4) + hints(0, 0) + hints(1, 2));
  EXPECT_EQ(get(hint_path("1%2C3")).body, hints(1, 1) + hints(3, 3));
  const HttpResponse response = get(hint_path("1"));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.header("content-type"), "application/octet-stream");
  EXPECT_EQ(response.header("cache-control"), "public, max-age=31536000, immutable");
  EXPECT_EQ(response.header("accept-ranges"), "bytes");
}

TEST_F(DatabaseRoutes, RefusesShardsThatAreNone) {
  for (const char* shards : {"5", "0-5", "a", "", "1,1", "3-2", "0-2,2", "-1"}) {
    const HttpResponse response = get(hint_path(shards));
    EXPECT_EQ(response.status, 400) << shards;
    EXPECT_EQ(response.problem(), "malformed-shards");
  }
  EXPECT_EQ(get(hint_path("5")).detail(), "part 1 of shards goes beyond the last shard, 4");
  EXPECT_EQ(get(epoch_path("/hint?shards=0&shards=1")).problem(), "malformed-shards");
  for (const char* rest : {"/hint?shard=0", "/hint?packs=0", "/hint?shards=0&packs=0"}) {
    const HttpResponse response = get(epoch_path(rest));
    EXPECT_EQ(response.status, 400) << rest;
    EXPECT_EQ(response.problem(), "malformed-shards");
    EXPECT_EQ(response.detail(), "the only parameter of this database's hint is shards");
  }
  EXPECT_EQ(get(hint_path(std::string(7'000, '0'))).status, 200) << "leading zeros are a number";
}

// Those of hints are the same as "shards", which RefusesShardsThatAreNone has.
TEST_F(DatabaseRoutes, IgnoresParametersElsewhere) {
  for (const char* query : {"?x=1", "?shards=99", "?%zz", "?"}) {
    EXPECT_EQ(get("/v1/database" + std::string(query)).body, database_.downloads->manifest_text)
        << query;
    EXPECT_EQ(get(epoch_path("/shards") + query).body, get(epoch_path("/shards")).body) << query;
    EXPECT_EQ(get("/health/live" + std::string(query)).status, 200) << query;
    EXPECT_EQ(get("/openapi.json" + std::string(query)).status, 200) << query;
  }
}

// docs/HTTP_API.md quotes the header.
TEST_F(DatabaseRoutes, SayHowLongAConnectionStays) {
  EXPECT_EQ(get("/v1/database").header("keep-alive"), "timeout=5, max=1000");
}

TEST_F(DatabaseRoutes, TagsEachSelectionOfHints) {
  const std::string all = get(epoch_path("/hint")).header("etag");
  EXPECT_EQ(all.size(), 66u);
  EXPECT_EQ(get(hint_path("0-4")).header("etag"), all);
  EXPECT_EQ(get(hint_path("00-4")).header("etag"), all);
  EXPECT_NE(get(hint_path("0-3")).header("etag"), all);
  EXPECT_NE(get(hint_path("4,0-3")).header("etag"), get(hint_path("0-3,4")).header("etag"));
}

TEST_F(DatabaseRoutes, DoesNotSendWhatTheClientHas) {
  for (const std::string& target :
       {std::string("/v1/database"), epoch_path("/shards"), epoch_path("/hint"), hint_path("1")}) {
    const std::string tag = get(target).header("etag");
    for (const std::string& list :
         {tag, "W/" + tag, "\"other\", " + tag, tag + " ,\"other\"", std::string("*")}) {
      LoopbackClient client(url());
      const HttpResponse response =
          client.ask(get_request(target, "If-None-Match: " + list + "\r\n"));
      EXPECT_EQ(response.status, 304) << list;
      EXPECT_EQ(response.header("etag"), tag);
      EXPECT_TRUE(response.has("cache-control"));
      EXPECT_FALSE(response.has("content-length"));
      // Nothing follows the header: what comes next is the next response.
      EXPECT_EQ(client.ask(get_request("/health/live")).status, 200);
    }
    // Two lines are one list.
    const std::string line = "If-None-Match: ";
    LoopbackClient client(url());
    client.send(get_request(target, line + "\"other\"\r\n" + line + tag + "\r\n"));
    EXPECT_EQ(client.receive().status, 304) << target;
    for (const std::string& list : {std::string("\"other\""), tag.substr(1), "x" + tag}) {
      EXPECT_EQ(get(target, "If-None-Match: " + list + "\r\n").status, 200) << list;
    }
  }
}

TEST_F(DatabaseRoutes, SendsRanges) {
  const std::string whole = hints(3, 4) + hints(1, 1);
  const auto range = [&](const std::string& value) {
    return get(hint_path("3-4,1"), "Range: " + value + "\r\n");
  };
  const auto expect_part = [&](const std::string& value, size_t first, size_t last) {
    const HttpResponse response = range(value);
    EXPECT_EQ(response.status, 206) << value;
    EXPECT_EQ(response.body, whole.substr(first, last - first + 1)) << value;
    EXPECT_EQ(response.header("content-range"), "bytes " + std::to_string(first) + "-" +
                                                    std::to_string(last) + "/" +
                                                    std::to_string(whole.size()));
    EXPECT_EQ(response.header("etag"), get(hint_path("3-4,1")).header("etag"));
  };
  const size_t each = database_.manifest.layout.hint_part_bytes();
  expect_part("bytes=0-0", 0, 0);
  expect_part("bytes=5-99", 5, 99);
  expect_part("bytes=" + std::to_string(2 * each - 3) + "-" + std::to_string(2 * each + 3),
              2 * each - 3, 2 * each + 3);
  expect_part("bytes=100-", 100, whole.size() - 1);
  expect_part("bytes=-7", whole.size() - 7, whole.size() - 1);
  expect_part("bytes=-999999999", 0, whole.size() - 1);
  expect_part("bytes=7-999999999", 7, whole.size() - 1);

  for (const char* value : {"bytes=0-1,5-6", "bytes=9-3", "pages=1-2", "nonsense"}) {
    const HttpResponse response = range(value);
    EXPECT_EQ(response.status, 200) << value;
    EXPECT_EQ(response.body, whole);
  }
  const HttpResponse beyond = range("bytes=" + std::to_string(whole.size()) + "-");
  EXPECT_EQ(beyond.status, 416);
  EXPECT_EQ(beyond.problem(), "range-not-satisfiable");
  EXPECT_EQ(beyond.header("content-range"), "bytes */" + std::to_string(whole.size()));
  EXPECT_FALSE(beyond.has("etag"));
  EXPECT_EQ(beyond.header("cache-control"), "no-store");
}

TEST_F(DatabaseRoutes, SendsARangeOnlyOfWhatTheClientHasTheRestOf) {
  const std::string tag = get(hint_path("0")).header("etag");
  EXPECT_EQ(get(hint_path("0"), "Range: bytes=1-2\r\nIf-Range: " + tag + "\r\n").status, 206);
  const HttpResponse other = get(hint_path("0"), "Range: bytes=1-2\r\nIf-Range: \"other\"\r\n");
  EXPECT_EQ(other.status, 200);
  EXPECT_EQ(other.body, hints(0, 0));
}

TEST_F(DatabaseRoutes, SurvivesRangesByTheThousand) {
  std::string ranges = "bytes=0-0";
  while (ranges.size() < 7'900) ranges += ",0-0";
  const HttpResponse response = get(hint_path("0"), "Range: " + ranges + "\r\n");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, hints(0, 0));
}

TEST_F(DatabaseRoutes, AnswersHeadWithoutABody) {
  for (const std::string& target :
       {std::string("/v1/database"), epoch_path("/shards"), hint_path("1-2")}) {
    LoopbackClient client(url());
    const HttpResponse expected = client.ask(get_request(target));
    client.send(get_request(target, "", "HEAD"));
    const HttpResponse response = client.receive(true);
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.header("content-length"), std::to_string(expected.body.size()));
    EXPECT_EQ(response.header("etag"), expected.header("etag"));
    EXPECT_EQ(client.ask(get_request(target)).body, expected.body) << "and the connection goes on";
  }
}

// Ranges are of GET alone (RFC 9110, section 14.2).
TEST_F(DatabaseRoutes, IgnoresRangesOfHead) {
  LoopbackClient client(url());
  client.send(get_request(hint_path("1"), "Range: bytes=2-4\r\n", "HEAD"));
  const HttpResponse response = client.receive(true);
  EXPECT_EQ(response.status, 200);
  EXPECT_FALSE(response.has("content-range"));
  EXPECT_EQ(response.header("content-length"), std::to_string(hints(1, 1).size()));
}

TEST_F(DatabaseRoutes, SendsNoErrorBodyForHead) {
  LoopbackClient client(url());
  for (const std::string& target :
       {std::string("/nowhere"), hint_path("5"), "/v1/epochs/" + kOldEpoch + "/shards"}) {
    const HttpResponse expected = client.ask(get_request(target));
    client.send(get_request(target, "", "HEAD"));
    const HttpResponse response = client.receive(true);
    EXPECT_EQ(response.status, expected.status);
    EXPECT_EQ(response.header("content-type"), "application/problem+json");
    EXPECT_EQ(response.header("content-length"), std::to_string(expected.body.size()));
  }
  EXPECT_EQ(client.ask(get_request("/health/live")).status, 200) << "no body came";
}

TEST_F(DatabaseRoutes, CompressesNothing) {
  const HttpResponse response = get("/v1/database", "Accept-Encoding: br, gzip, deflate\r\n");
  EXPECT_EQ(response.body, database_.downloads->manifest_text);
  EXPECT_FALSE(response.has("content-encoding"));
}

TEST_F(DatabaseRoutes, TellsRetiredEpochsFromUnknownOnes) {
  for (const char* rest : {"/shards", "/hint", "/hint?shards=0"}) {
    const HttpResponse retired = get("/v1/epochs/" + kOldEpoch + rest);
    EXPECT_EQ(retired.status, 410);
    EXPECT_EQ(retired.problem(), "retired-epoch");
    EXPECT_EQ(retired.epoch(), database_.epoch);
    for (const std::string& id : {std::string(64, 'f'), std::string("x"), database_.epoch + "0"}) {
      const HttpResponse unknown = get("/v1/epochs/" + id + rest);
      EXPECT_EQ(unknown.status, 404);
      EXPECT_EQ(unknown.problem(), "unknown-epoch");
      EXPECT_EQ(unknown.epoch(), database_.epoch);
    }
  }
}

}  // namespace
}  // namespace blindfuse::server_testing
