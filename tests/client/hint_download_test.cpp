#include <blindfuse/errors.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "client/database_description.h"
#include "client/hint_download.h"
#include "client/remote_database.h"
#include "src/system/file.h"
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

using std::chrono::seconds;
using testing::AllOf;

constexpr uint32_t kParts = 3;
// A download that takes more requests than this does not end.
constexpr size_t kRequestsMax = 500;

class HintDownloadTest : public testing::Test {
 protected:
  explicit HintDownloadTest(const char* lwe = "lwe-1288")
      : server_(ServedDatabase::with_noise(kParts, 2, 0, lwe)) {}

  ScratchFolder scratch_;
  HandClock clock_;
  FakeServer server_;
  RemoteDatabase remote_{std::make_unique<FakeTransport>(server_), "http://test", seconds(60),
                         clock_.clock()};
  const uint64_t part_bytes_ = server_.database.layout().hint_part_bytes();

  std::vector<MissingHint> all() const {
    std::vector<MissingHint> missing;
    const DatabaseDescription database(server_.database.manifest_text(), server_.database.table());
    for (uint32_t part = 0; part < server_.database.layout().hint_part_count(); ++part) {
      missing.push_back({part, database.epoch_table().hint_hash(part)});
    }
    return missing;
  }

  uint64_t fetch() {
    HintDownload download(scratch_.path(), HintShape(server_.database.layout()));
    return download.fetch(remote_, server_.database.epoch(), all(), {});
  }

  // What fetching throws, as text.
  template <class Error>
  std::string failure() {
    return message_of<Error>([this] { fetch(); });
  }

  // Calls this with the body of every answer, and with whether it is of a whole request: the others
  // go on where an earlier one broke.
  void answer_with(std::function<void(Bytes& body, bool is_whole)> alter) {
    server_.alter_body = [this, alter = std::move(alter)](Bytes& body) {
      if (server_.requests.size() > kRequestsMax) throw std::logic_error("it does not end");
      alter(body, server_.requests.back().first_byte == 0);
    };
  }
  // A beginning of a part, and when that is to be completed, wrong bytes.
  void answer_with_beginnings_and_wrong_ends() {
    answer_with([this](Bytes& body, bool is_whole) {
      if (is_whole) {
        server_.break_after = part_bytes_ / 2;
      } else {
        body[0] ^= 1;
      }
    });
  }
};

class MaskDownloadTest : public HintDownloadTest {
 protected:
  MaskDownloadTest() : HintDownloadTest("ring-2048") {}
};

TEST_F(HintDownloadTest, AHintThatComesInPiecesAndWrongIsBegunAgainOnce) {
  answer_with_beginnings_and_wrong_ends();
  EXPECT_THAT(failure<ProtocolError>(), AllOf(HasSubstr("the hint of shard 0 came in pieces"),
                                              HasSubstr("begun again once")));
  // A beginning and a wrong end, twice.
  EXPECT_EQ(server_.count("/hint?"), 4u);
}

TEST_F(MaskDownloadTest, AMaskThatComesInPiecesAndWrongIsBegunAgainOnce) {
  answer_with_beginnings_and_wrong_ends();
  EXPECT_THAT(failure<ProtocolError>(), HasSubstr("the mask of pack 0 came in pieces"));
  EXPECT_EQ(server_.count("/hint?"), 4u);
}

TEST_F(HintDownloadTest, ABrokenConnectionIsResumedAtTheByte) {
  for (const uint64_t at : {uint64_t{1}, part_bytes_ - 1, part_bytes_, 2 * part_bytes_ + 1000}) {
    SCOPED_TRACE(at);
    for (const auto& entry : std::filesystem::directory_iterator(scratch_.path())) {
      std::filesystem::remove(entry);
    }
    server_.requests.clear();
    server_.break_after = at;
    EXPECT_EQ(fetch(), kParts * part_bytes_);
    for (const MissingHint& hint : all()) {
      const std::filesystem::path file = scratch_.path() / hint_file_name(hint.hash);
      EXPECT_EQ(read_file_bytes(file, part_bytes_), server_.database.hints()[hint.part]);
    }
    ASSERT_EQ(server_.count("/hint?"), 2u);
    const SeenRequest again = server_.seen("/hint?")[1];
    const uint64_t whole = at / part_bytes_;
    const std::string parts = whole == 2 ? "2" : std::to_string(whole) + "-2";
    EXPECT_TRUE(again.path.ends_with("shards=" + parts)) << again.path;
    EXPECT_EQ(again.first_byte, at % part_bytes_);
  }
}

TEST_F(HintDownloadTest, AConnectionThatBringsNothingIsNotTriedForEver) {
  server_.break_after = 0;
  EXPECT_THROW(fetch(), ConnectionError);
  EXPECT_EQ(server_.count("/hint?"), 1u);
}

TEST_F(HintDownloadTest, AWrongBeginningThatIsThereCostsOneMoreRequest) {
  answer_with([this, breaks = true](Bytes& body, bool is_whole) mutable {
    if (!std::exchange(breaks, false)) return;
    EXPECT_TRUE(is_whole);
    body[0] ^= 1;
    server_.break_after = part_bytes_ / 2;
  });
  EXPECT_NO_THROW(fetch());
  EXPECT_EQ(server_.count("/hint?"), 3u);
}

TEST_F(HintDownloadTest, ADownloadThatCreepsEndsWithItsCall) {
  answer_with([this](Bytes&, bool) {
    server_.break_after = 1;
    clock_.advance(seconds(1));
  });
  const uint64_t total = kParts * part_bytes_;
  const uint64_t allowed_s = 60 + (total + 31'999) / 32'000;
  EXPECT_THAT(failure<ConnectionError>(),
              AllOf(HasSubstr("was not done in " + std::to_string(allowed_s) + " s"),
                    HasSubstr(std::to_string(total) + " bytes at 32 kB/s"),
                    HasSubstr("allow more with --timeout")));
  EXPECT_EQ(server_.count("/hint?"), allowed_s);
}

TEST_F(HintDownloadTest, ALongDownloadHasTheTimeForItsBytes) {
  server_.database = ServedDatabase::with_noise(64, 64, 0);
  const uint64_t total = 64 * server_.database.layout().hint_part_bytes();
  const auto allowed = std::chrono::milliseconds(60'000 + total * 1000 / 32'000);
  ASSERT_GT(allowed, seconds(90));
  answer_with([&, breaks = 2](Bytes&, bool) mutable {
    if (breaks-- > 0) server_.break_after = 1000;
    clock_.advance((allowed - seconds(1)) / 3);
  });
  EXPECT_EQ(fetch(), total);
}

TEST_F(HintDownloadTest, LargeHintsComeInRequestsOfBoundedSize) {
  server_.database = ServedDatabase::with_noise(9, 2, 0);
  HintDownload download(scratch_.path(), HintShape(server_.database.layout()), 4 * part_bytes_);
  EXPECT_EQ(download.fetch(remote_, server_.database.epoch(), all(), {}), 9 * part_bytes_);
  std::vector<std::string> asked;
  for (const SeenRequest& request : server_.seen("/hint?")) {
    asked.push_back(request.path.substr(request.path.find('=') + 1));
  }
  EXPECT_EQ(asked, (std::vector<std::string>{"0-3", "4-7", "8"}));
}

TEST_F(HintDownloadTest, AddressesStayShortForScatteredShards) {
  server_.database = ServedDatabase::with_noise(1000, 1, 0);
  std::vector<MissingHint> missing = all();
  std::erase_if(missing, [](const MissingHint& hint) { return hint.part % 2 == 1; });
  HintDownload(scratch_.path(), HintShape(server_.database.layout()))
      .fetch(remote_, server_.database.epoch(), missing, {});
  EXPECT_GT(server_.count("/hint?"), 1u);
  for (const SeenRequest& request : server_.requests) EXPECT_LT(request.path.size(), 2000u);
}

}  // namespace
}  // namespace blindfuse
