#include "client/remote_database.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/client/client_testing.h"
#include "tests/client/fake_server.h"

namespace blindfuse {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

class RemoteDatabaseTest : public testing::Test {
 protected:
  FakeServer server_{ServedDatabase::with_noise(6, 1, 0)};
  RemoteDatabase remote_{std::make_unique<FakeTransport>(server_), "http://test"};
  const EpochId epoch_ = server_.database.epoch();
  static constexpr uint64_t kTableBytes = 6 * 112;
  const uint64_t hint_bytes_ = server_.database.layout().hint_part_bytes();

  Bytes fetch_hints(const std::string& shards, uint64_t first_byte, uint64_t total) {
    Bytes got;
    const Mode mode = server_.database.layout().mode();
    remote_.fetch_hints(
        epoch_, mode, shards, first_byte, total,
        [&](std::span<const uint8_t> bytes) { got.insert(got.end(), bytes.begin(), bytes.end()); });
    return got;
  }
};

TEST_F(RemoteDatabaseTest, FetchesManifestAndTable) {
  EXPECT_EQ(remote_.fetch_manifest(), server_.database.manifest_text());
  EXPECT_EQ(remote_.fetch_table(epoch_, kTableBytes), server_.database.table());
}

TEST_F(RemoteDatabaseTest, AManifestLongerThanTheLimitIsRefused) {
  for (const bool declared : {true, false}) {
    server_.declare_length = declared;
    server_.alter_body = [](Bytes& body) { body.resize(kManifestBytesMax + 1, ' '); };
    EXPECT_THAT(message_of<ProtocolError>([&] { remote_.fetch_manifest(); }), HasSubstr("65536"));
  }
}

TEST_F(RemoteDatabaseTest, WhatIsNoManifestNamesTheAddress) {
  server_.alter_body = [](Bytes& body) { body = reference_pir::bytes_of("<html>\x1b[31m</html>"); };
  const std::string said = message_of<ProtocolError>([&] { remote_.fetch_manifest(); });
  EXPECT_THAT(said, HasSubstr("http://test"));
  EXPECT_EQ(said.find('\x1b'), std::string::npos);
}

TEST_F(RemoteDatabaseTest, BodiesOfAnotherLengthAreRefused) {
  const Layout& layout = server_.database.layout();
  const Bytes query(layout.query_bytes());
  for (const bool declared : {true, false}) {
    server_.declare_length = declared;
    for (const int change : {-1, +1}) {
      server_.alter_body = [&](Bytes& body) {
        body.resize(body.size() + static_cast<size_t>(static_cast<long>(change)));
      };
      EXPECT_THROW(remote_.fetch_table(epoch_, kTableBytes), ProtocolError) << change << declared;
      EXPECT_THROW(fetch_hints("0", 0, hint_bytes_), ProtocolError) << change << declared;
      EXPECT_THROW(remote_.ask(epoch_, query, layout.response_bytes()), ProtocolError)
          << change << declared;
    }
  }
}

TEST_F(RemoteDatabaseTest, FetchesHintsFromAnyByteOn) {
  Bytes all;
  for (const size_t shard : {0, 1, 4}) {
    const Bytes& hint = server_.database.hints()[shard];
    all.insert(all.end(), hint.begin(), hint.end());
  }
  for (const bool ignore_ranges : {false, true}) {
    server_.ignore_ranges = ignore_ranges;
    for (const uint64_t first :
         {uint64_t{0}, uint64_t{1}, uint64_t{1000}, hint_bytes_, 3 * hint_bytes_ - 1}) {
      const Bytes got = fetch_hints("0-1,4", first, 3 * hint_bytes_);
      EXPECT_EQ(got, Bytes(all.begin() + static_cast<long>(first), all.end())) << first;
    }
  }
}

TEST_F(RemoteDatabaseTest, FetchesMasksByTheirPacks) {
  server_.database = ServedDatabase::with_noise(9, 500, 0, "ring-2048", 18);
  const EpochId epoch = server_.database.epoch();
  EXPECT_EQ(remote_.fetch_table(epoch, 9 * 112 + 5 * 64), server_.database.table());
  Bytes got;
  const ByteSink append = [&](std::span<const uint8_t> bytes) {
    got.insert(got.end(), bytes.begin(), bytes.end());
  };
  remote_.fetch_hints(epoch, Mode::kPacked, "1,4", 0, 2 * 4608, append);
  EXPECT_THAT(server_.requests.back().path, EndsWith("/hint?packs=1,4"));
  using reference_pir::operator+;
  EXPECT_EQ(got, server_.database.hints()[1] + server_.database.hints()[4]);
  EXPECT_THAT(message_of<ProtocolError>(
                  [&] { remote_.fetch_hints(epoch, Mode::kPacked, "1,4", 0, 4608, append); }),
              HasSubstr("masks of another length"));
}

TEST_F(RemoteDatabaseTest, ErrorsCarryTheServersWords) {
  const auto ask = [&] { remote_.ask(epoch_, {}, 10); };
  server_.errors = {FakeServer::error(410, "epoch retired")};
  EXPECT_THAT(message_of<EpochGoneError>(ask), HasSubstr("epoch retired"));
  server_.errors = {FakeServer::error(503, "queue full", 7)};
  EXPECT_THAT(message_of<ServerBusyError>(ask), HasSubstr("queue full"));
  server_.errors = {FakeServer::error(400, "bad \x1b[31m query")};
  const std::string said = message_of<ServerError>(ask);
  EXPECT_THAT(said, HasSubstr("400"));
  EXPECT_THAT(said, HasSubstr("bad ?[31m query"));
  server_.errors = {
      {.status = 500, .content_type = "text/html", .retry_after_s = {}, .problem = "<p>"}};
  EXPECT_THAT(message_of<ServerError>(ask), HasSubstr("500"));
}

TEST_F(RemoteDatabaseTest, AnUnknownEpochIsGone) {
  EXPECT_THROW(remote_.fetch_table(EpochId(64, '0'), kTableBytes), EpochGoneError);
}

}  // namespace
}  // namespace blindfuse
