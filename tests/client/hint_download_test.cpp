#include "client/hint_download.h"

#include <blindfuse/errors.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/database_description.h"
#include "tests/client/fake_server.h"
#include "tests/client/hand_clock.h"
#include "tests/client/scratch_folder.h"

namespace blindfuse {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;

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
    try {
      fetch();
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing was thrown";
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

}  // namespace
}  // namespace blindfuse
