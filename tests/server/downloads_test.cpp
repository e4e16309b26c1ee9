// What clients download: which parts of it, and over HTTP, whole, in part, and not again.
#include "host/server/routes/downloads.h"

#include <gtest/gtest.h>

#include "host/server/http/response.h"
#include "src/base/hex.h"
#include "src/protocol/sha256.h"
#include "tests/server/running_server.h"
#include "tests/support.h"

namespace blindfuse {

void PrintTo(const HintParts& range, std::ostream* out) {
  *out << range.first << "-" << range.last;
}

}  // namespace blindfuse

namespace blindfuse::server_testing {
namespace {

using http::ByteRange;
using http::parse_byte_range;

TEST(PartSelection, KeepsTheOrderOfItsParts) {
  EXPECT_EQ(parse_part_selection("0", 1, "shard"), (PartSelection{{0, 0}}));
  EXPECT_EQ(parse_part_selection("17,0-3,5-5", 18, "shard"),
            (PartSelection{{17, 17}, {0, 3}, {5, 5}}));
  EXPECT_EQ(parse_part_selection("0-65535", 65'536, "shard"), (PartSelection{{0, 65'535}}));
  // Equal selections have equal texts.
  EXPECT_EQ(format_part_selection(parse_part_selection("7,00-3", 8, "shard")), "7-7,0-3");
}

TEST(PartSelection, NamesThePartThatIsWrong) {
  const auto error_of = [](std::string_view text, const char* part = "shard") {
    return support::input_error_of([&] { parse_part_selection(text, 8, part); });
  };
  for (const char* text : {"", ",", ",1", "-", "1-", "-1", "1-2-3", "a", "1 ", " 1", "+1", "0x1",
                           "1.0", "4294967296", "99999999999999999999", "0..3", "0-4294967296"}) {
    EXPECT_EQ(error_of(text), "part 1 of shards is not a shard or a range of shards, as in 0-3,17")
        << text;
  }
  EXPECT_NE(error_of(std::string_view("0\0", 2)), "");
  EXPECT_EQ(error_of("1,,2"), error_of("1,"));
  EXPECT_EQ(error_of("1,"), "part 2 of shards is not a shard or a range of shards, as in 0-3,17");
  EXPECT_EQ(error_of("x", "pack"),
            "part 1 of packs is not a pack or a range of packs, as in 0-3,17");
  EXPECT_EQ(error_of("0-3,8"), "part 2 of shards goes beyond the last shard, 7");
  EXPECT_EQ(error_of("8", "pack"), "part 1 of packs goes beyond the last pack, 7");
  for (const char* text : {"4294967295", "0-4294967295"}) {
    EXPECT_EQ(error_of(text), "part 1 of shards goes beyond the last shard, 7");
  }
  EXPECT_EQ(error_of("1,2,5-4"), "part 3 of shards ends before it begins");
  EXPECT_EQ(error_of("0-3,3"), "shard 3 is named twice");
  EXPECT_EQ(error_of("6,0,6"), "shard 6 is named twice");
  EXPECT_EQ(error_of("2-5,0-7"), "shard 2 is named twice");
  EXPECT_EQ(error_of("1,1", "pack"), "pack 1 is named twice");
}

TEST(HintBody, IsThePartsInTheirOrderFromWhereverItIsRead) {
  auto downloads = tiny_database().downloads;
  for (const PartSelection& selection :
       {PartSelection{{0, 4}}, {{3, 3}}, {{3, 4}, {0, 1}}, {{4, 4}, {0, 0}, {2, 3}}}) {
    const HintBody body(downloads, selection);
    std::string expected;
    for (const HintParts& parts : selection) {
      expected += hints_of(tiny_database(), parts.first, parts.last);
    }
    ASSERT_EQ(body.size(), expected.size());
    for (uint64_t offset = 0; offset < body.size(); offset += 997) {
      const auto bytes = body.from(offset);
      ASSERT_GE(bytes.size(), 1u);
      ASSERT_LE(offset + bytes.size(), body.size());
      EXPECT_TRUE(std::string(bytes.begin(), bytes.end()) == expected.substr(offset, bytes.size()));
    }
  }
  // It keeps them in memory.
  const std::weak_ptr<const EpochDownloads> watched = downloads;
  auto body = std::make_unique<HintBody>(downloads, PartSelection{{0, 0}});
  EXPECT_EQ(body->memory(), downloads.get());
  downloads.reset();
  EXPECT_FALSE(watched.expired());
  body.reset();
  EXPECT_TRUE(watched.expired());
}

TEST(ByteRange, ReadsOneRange) {
  EXPECT_EQ(parse_byte_range("bytes=0-0", 10), (ByteRange{0, 0}));
  EXPECT_EQ(parse_byte_range("bytes=3-7", 10), (ByteRange{3, 7}));
  EXPECT_EQ(parse_byte_range("bytes=3-", 10), (ByteRange{3, 9}));
  EXPECT_EQ(parse_byte_range("bytes=-3", 10), (ByteRange{7, 9}));
  EXPECT_EQ(parse_byte_range("bytes=3-10", 10), (ByteRange{3, 9}));
  EXPECT_EQ(parse_byte_range("Bytes=0-1", 10), (ByteRange{0, 1})) << "a unit has no case";
  // Beyond 64 bits: syntax knows no largest number (RFC 9110, section 14.1.1).
  for (const std::string& large : {std::string("18446744073709551615"),
                                   std::string("18446744073709551616"), std::string(100, '9')}) {
    EXPECT_EQ(parse_byte_range("bytes=3-" + large, 10), (ByteRange{3, 9}));
    EXPECT_EQ(parse_byte_range("bytes=-" + large, 10), (ByteRange{0, 9}));
  }
}

TEST(ByteRange, IgnoresWhatIsNoSingleRangeOfBytes) {
  for (const char* header : {"", "bytes", "bytes=", "bytes=-", "bytes=a-b", "bytes=1", "bytes=5-4",
                             "bytes=0-1,3-4", "bytes=--1", "bytes=0--1", "bytes= 0-1", "bytes=+0-1",
                             "pages=0-1", "byte=0-1", "bytes=0-99999999999999999999x"}) {
    EXPECT_EQ(parse_byte_range(header, 10), std::nullopt) << header;
  }
}

TEST(ByteRange, RefusesWhatBeginsBeyondTheEnd) {
  for (const char* header : {"bytes=10-", "bytes=10-10", "bytes=18446744073709551616-", "bytes=-0",
                             "bytes=99999999999999999999-99999999999999999999"}) {
    try {
      parse_byte_range(header, 10);
      ADD_FAILURE() << "accepted: " << header;
    } catch (const http::Error& error) {
      EXPECT_EQ(error.status(), 416);
      EXPECT_EQ(error.headers().at(0),
                (std::pair<std::string, std::string>("Content-Range", "bytes */10")));
    }
  }
}

class Downloads : public RunningServer {
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

TEST_F(Downloads, GivesTheManifest) {
  const HttpResponse response = get("/v1/database");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, database_.downloads->manifest_text);
  EXPECT_EQ(response.header("content-type"), "application/json");
  EXPECT_EQ(response.header("cache-control"), "no-cache");
  const std::string& text = database_.downloads->manifest_text;
  EXPECT_EQ(response.header("etag"), "\"" + encode_hex(sha256(support::as_bytes(text))) + "\"");
}

TEST_F(Downloads, GivesTheShardTable) {
  const HttpResponse response = get(epoch_path("/shards"));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body,
            std::string(database_.downloads->table.begin(), database_.downloads->table.end()));
  EXPECT_EQ(response.body.size(), 112u * kShards);
  EXPECT_EQ(response.header("content-type"), "application/octet-stream");
  EXPECT_EQ(response.header("cache-control"), "public, max-age=31536000, immutable");
}

TEST_F(Downloads, GivesTheHintsThatAreAskedFor) {
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

TEST_F(Downloads, RefusesShardsThatAreNone) {
  const auto refusal_of = [&](const std::string& rest) {
    const HttpResponse response = get(epoch_path("/hint" + rest));
    expect_problem(response, 400, "malformed-shards");
    return response.detail();
  };
  EXPECT_EQ(refusal_of("?shards=5"), "part 1 of shards goes beyond the last shard, 4");
  EXPECT_EQ(refusal_of("?shards=0&shards=1"), "shards is given twice");
  for (const char* rest : {"?shard=0", "?packs=0", "?shards=0&packs=0"}) {
    EXPECT_EQ(refusal_of(rest), "the only parameter of this database's hint is shards");
  }
  EXPECT_EQ(get(hint_path(std::string(7'000, '0'))).status, 200) << "leading zeros are a number";
}

// Those of hints are the same as "shards", which RefusesShardsThatAreNone has.
TEST_F(Downloads, IgnoresParametersElsewhere) {
  for (const char* query : {"?x=1", "?shards=99", "?%zz", "?"}) {
    EXPECT_EQ(get("/v1/database" + std::string(query)).body, database_.downloads->manifest_text)
        << query;
    EXPECT_EQ(get(epoch_path("/shards") + query).body, get(epoch_path("/shards")).body) << query;
    EXPECT_EQ(get("/health/live" + std::string(query)).status, 200) << query;
    EXPECT_EQ(get("/openapi.json" + std::string(query)).status, 200) << query;
  }
}

TEST_F(Downloads, TagsEachSelectionOfHints) {
  const std::string all = get(epoch_path("/hint")).header("etag");
  EXPECT_EQ(all.size(), 66u);
  EXPECT_EQ(get(hint_path("0-4")).header("etag"), all);
  EXPECT_EQ(get(hint_path("00-4")).header("etag"), all);
  EXPECT_NE(get(hint_path("0-3")).header("etag"), all);
  EXPECT_NE(get(hint_path("4,0-3")).header("etag"), get(hint_path("0-3,4")).header("etag"));
}

TEST_F(Downloads, DoesNotSendWhatTheClientHas) {
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
    EXPECT_EQ(get(target, "If-None-Match: \"other\"\r\nIf-None-Match: " + tag + "\r\n").status,
              304);
    for (const std::string& list : {std::string("\"other\""), tag.substr(1), "x" + tag}) {
      EXPECT_EQ(get(target, "If-None-Match: " + list + "\r\n").status, 200) << list;
    }
  }
}

TEST_F(Downloads, SendsRanges) {
  const std::string whole = hints(3, 4) + hints(1, 1);
  const auto range = [&](const std::string& value) {
    return get(hint_path("3-4,1"), "Range: " + value + "\r\n");
  };
  const size_t each = database_.manifest.layout.hint_part_bytes();
  for (const auto& [first, last] : {std::pair(size_t{0}, size_t{0}),
                                    {2 * each - 3, 2 * each + 3},
                                    {whole.size() - 7, whole.size() - 1}}) {
    const std::string bytes = std::to_string(first) + "-" + std::to_string(last);
    const HttpResponse response = range("bytes=" + bytes);
    EXPECT_EQ(response.status, 206) << bytes;
    EXPECT_EQ(response.body, whole.substr(first, last - first + 1)) << bytes;
    EXPECT_EQ(response.header("content-range"),
              "bytes " + bytes + "/" + std::to_string(whole.size()));
    EXPECT_EQ(response.header("etag"), get(hint_path("3-4,1")).header("etag"));
  }
  std::string thousands = "bytes=0-0";
  while (thousands.size() < 7'900) thousands += ",0-0";
  for (const std::string& value : {std::string("bytes=9-3"), thousands}) {
    const HttpResponse response = range(value);
    EXPECT_EQ(response.status, 200) << value;
    EXPECT_EQ(response.body, whole);
  }
  const HttpResponse beyond = range("bytes=" + std::to_string(whole.size()) + "-");
  expect_problem(beyond, 416, "range-not-satisfiable");
  EXPECT_EQ(beyond.header("content-range"), "bytes */" + std::to_string(whole.size()));
  EXPECT_FALSE(beyond.has("etag"));
  EXPECT_EQ(beyond.header("cache-control"), "no-store");
}

TEST_F(Downloads, SendsARangeOnlyOfWhatTheClientHasTheRestOf) {
  const std::string tag = get(hint_path("0")).header("etag");
  EXPECT_EQ(get(hint_path("0"), "Range: bytes=1-2\r\nIf-Range: " + tag + "\r\n").status, 206);
  const HttpResponse other = get(hint_path("0"), "Range: bytes=1-2\r\nIf-Range: \"other\"\r\n");
  EXPECT_EQ(other.status, 200);
  EXPECT_EQ(other.body, hints(0, 0));
}

TEST_F(Downloads, AnswersHeadWithoutABody) {
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
TEST_F(Downloads, IgnoresRangesOfHead) {
  LoopbackClient client(url());
  client.send(get_request(hint_path("1"), "Range: bytes=2-4\r\n", "HEAD"));
  const HttpResponse response = client.receive(true);
  EXPECT_EQ(response.status, 200);
  EXPECT_FALSE(response.has("content-range"));
  EXPECT_EQ(response.header("content-length"), std::to_string(hints(1, 1).size()));
}

TEST_F(Downloads, SendsNoErrorBodyForHead) {
  LoopbackClient client(url());
  for (const std::string& target : {std::string("/nowhere"), hint_path("5"), old_path("/shards")}) {
    const HttpResponse expected = client.ask(get_request(target));
    client.send(get_request(target, "", "HEAD"));
    const HttpResponse response = client.receive(true);
    EXPECT_EQ(response.status, expected.status);
    EXPECT_EQ(response.header("content-type"), "application/problem+json");
    EXPECT_EQ(response.header("content-length"), std::to_string(expected.body.size()));
  }
  EXPECT_EQ(client.ask(get_request("/health/live")).status, 200) << "no body came";
}

TEST_F(Downloads, CompressesNothing) {
  const HttpResponse response = get("/v1/database", "Accept-Encoding: br, gzip, deflate\r\n");
  EXPECT_EQ(response.body, database_.downloads->manifest_text);
  EXPECT_FALSE(response.has("content-encoding"));
}

TEST_F(Downloads, TellsRetiredEpochsFromUnknownOnes) {
  for (const char* rest : {"/shards", "/hint", "/hint?shards=0"}) {
    const HttpResponse retired = get(old_path(rest));
    expect_problem(retired, 410, "retired-epoch");
    EXPECT_EQ(retired.epoch(), database_.epoch);
    for (const std::string& id : {std::string(64, 'f'), std::string("x"), database_.epoch + "0"}) {
      const HttpResponse unknown = get("/v1/epochs/" + id + rest);
      expect_problem(unknown, 404, "unknown-epoch");
      EXPECT_EQ(unknown.epoch(), database_.epoch);
    }
  }
}

}  // namespace
}  // namespace blindfuse::server_testing
