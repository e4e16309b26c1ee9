// Servers that show a client another database than the operator signed: each lie is refused, named,
// and told apart from the others, and nothing is asked of the server after it.
#include <blindfuse/errors.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "client/manifest_guard.h"
#include "client/session.h"
#include "host/publish/signing_key.h"
#include "tests/client/client_testing.h"
#include "tests/client/fake_server.h"
#include "tests/client/look_ups.h"

namespace blindfuse {
namespace {

using testing::AllOf;
using testing::HasSubstr;

SigningKey key_of(uint8_t fill) {
  return SigningKey::make([fill](std::span<uint8_t> bytes) { std::ranges::fill(bytes, fill); });
}

class LyingServerTest : public FakeServerTest {
 protected:
  LyingServerTest() : FakeServerTest(ServedDatabase::with_noise(2, 16, 1)) {}

  // 2026-11-24T18:30:00Z, and the following seconds.
  static constexpr uint64_t kTime = 1'795'545'000;

  const SigningKey key_ = key_of(1);
  const SigningKey other_key_ = key_of(2);
  const std::string public_key_ = encode_hex(key_.public_key());
  const std::string other_public_key_ = encode_hex(other_key_.public_key());

  const ServedDatabase old_ = server_.database;
  const ServedDatabase new_ = old_.with_other_noise(0, 2);

  static ServedDatabase signed_by(const SigningKey& key, const ServedDatabase& database,
                                  uint64_t sequence) {
    return database.with_signature(key.sign(database.manifest(), sequence, kTime + sequence));
  }

  ClientOptions options(std::optional<std::string> server_key, bool allow_rollback = false) const {
    ClientOptions options = FakeServerTest::options();
    options.server_key = std::move(server_key);
    options.allow_rollback = allow_rollback;
    return options;
  }
  Session keyed() { return session(options(public_key_)); }
  Session keyless() { return session(options(std::nullopt)); }

  // What connecting fails with. Only the manifest was asked for.
  std::string refusal(const ClientOptions& options) {
    const size_t before = server_.requests.size();
    const std::string message = message_of<SignatureError>([&] { session(options); });
    EXPECT_EQ(server_.requests.size(), before + 1);
    EXPECT_EQ(server_.requests.back().path, "/v1/database");
    return message;
  }
  std::string refusal() { return refusal(options(public_key_)); }

  std::string warning() { return keyless().signer()->warning; }

  SeenSigners seen() const { return SeenSignersFile(folder()).read(); }
};

TEST_F(LyingServerTest, WhatTheKeySignedIsTaken) {
  server_.database = signed_by(key_, old_, 5);
  Session session = keyed();
  EXPECT_TRUE(value_of(session, "0"));
  EXPECT_EQ(session.signer()->signer, public_key_);
  EXPECT_EQ(session.signer()->sequence, 5u);
  EXPECT_EQ(session.signer()->time, kTime + 5);
  EXPECT_TRUE(session.signer()->is_checked);
  EXPECT_EQ(session.signer()->warning, "");
  EXPECT_EQ(keyed().signer()->sequence, 5u) << "the same again";
  server_.database = signed_by(key_, new_, 6);
  EXPECT_TRUE(value_of(keyed(), "1"));
}

TEST_F(LyingServerTest, NoLieIsCalledByTheNameOfAnother) {
  std::vector<std::string> messages = {refusal()};
  server_.database = signed_by(other_key_, old_, 5);
  messages.push_back(refusal());
  EXPECT_THAT(messages[1], AllOf(HasSubstr(public_key_), HasSubstr(other_public_key_)));
  ManifestSignature wrong = key_.sign(old_.manifest(), 5, kTime);
  wrong.signature[0] ^= 1;
  server_.database = old_.with_signature(wrong);
  messages.push_back(refusal());
  server_.database = signed_by(key_, new_, 5);
  keyed();
  server_.database = signed_by(key_, old_, 4);
  messages.push_back(refusal());
  server_.database = signed_by(key_, old_, 5);
  messages.push_back(refusal());
  const std::vector<std::string> names = {"is not signed; the key " + public_key_,
                                          "signed by another key", "is wrong", "rolled back",
                                          "two different manifests with the same sequence number"};
  for (size_t i = 0; i < names.size(); ++i) {
    for (size_t j = 0; j < names.size(); ++j) {
      EXPECT_EQ(messages[j].find(names[i]) != std::string::npos, i == j) << messages[j];
    }
  }
  server_.database = old_;
  EXPECT_THAT(refusal(), HasSubstr("is not signed")) << "as it was before";
}

// docs/PROTOCOL.md, section 2: the error is that of the first rule that is broken.
TEST_F(LyingServerTest, AManifestThatBreaksSeveralRulesIsRefusedForTheFirst) {
  server_.database = signed_by(key_, new_, 20);
  keyed();
  ManifestSignature signature = other_key_.sign(old_.manifest(), 5, kTime);
  signature.sequence = 6;
  server_.database = old_.with_signature(signature);
  EXPECT_THAT(refusal(), HasSubstr("signed by another key")) << "wrong and rolled back, too";
  signature = key_.sign(old_.manifest(), 5, kTime);
  signature.sequence = 6;
  server_.database = old_.with_signature(signature);
  EXPECT_THAT(refusal(), HasSubstr("is wrong")) << "rolled back, too";
}

TEST_F(LyingServerTest, AWrongSignatureIsRefusedWithAKeyAndWithout) {
  ManifestSignature signature = key_.sign(old_.manifest(), 5, kTime);
  signature.sequence = 6;
  server_.database = old_.with_signature(signature);
  EXPECT_THAT(refusal(), AllOf(HasSubstr("signature"), HasSubstr("is wrong")));
  EXPECT_THAT(refusal(options(std::nullopt)), HasSubstr("is wrong"));
  // That of another database.
  server_.database = old_.with_signature(key_.sign(new_.manifest(), 5, kTime));
  EXPECT_THAT(refusal(), HasSubstr("is wrong"));
  EXPECT_EQ(seen(), SeenSigners());
}

TEST_F(LyingServerTest, AnOlderManifestIsRefusedWithBothNumbersAndTimes) {
  server_.database = signed_by(key_, new_, 20);
  keyed();
  server_.database = signed_by(key_, old_, 10);
  EXPECT_THAT(refusal(),
              AllOf(HasSubstr("rolled back"), HasSubstr("number 10 of 2026-11-24T18:30:10Z"),
                    HasSubstr("number 20 of 2026-11-24T18:30:20Z"), HasSubstr("--allow-rollback")));
  // Allowed, it is taken, and the higher number stays the one to compare with.
  EXPECT_EQ(session(options(public_key_, true)).signer()->sequence, 10u);
  EXPECT_EQ(seen().newest.at(public_key_).sequence, 20u);
  EXPECT_THAT(refusal(), HasSubstr("rolled back"));
}

TEST_F(LyingServerTest, TwoManifestsOfOneNumberAreNamedAsThat) {
  server_.database = signed_by(key_, old_, 7);
  keyed();
  server_.database = signed_by(key_, new_, 7);
  EXPECT_THAT(refusal(),
              HasSubstr("two different manifests with the same sequence number: number 7"));
  EXPECT_THAT(refusal(options(public_key_, true)),
              HasSubstr("two different manifests with the same sequence number"));
  // The same database at another time is another manifest, too.
  server_.database = old_.with_signature(key_.sign(old_.manifest(), 7, kTime));
  EXPECT_THAT(refusal(), HasSubstr("two different manifests with the same sequence number"));
  server_.database = signed_by(key_, new_, 8);
  EXPECT_EQ(keyed().signer()->sequence, 8u);
}

// A client that is connected finds the lie where it fetches the next manifest: nothing more is
// fetched, and its own epoch stays.
TEST_F(LyingServerTest, ALaterManifestIsCheckedLikeTheFirst) {
  server_.database = signed_by(key_, new_, 20);
  Session session = keyed();
  value_of(session, "0");
  server_.database = signed_by(key_, old_, 10);
  const size_t queries = server_.count("/queries");
  EXPECT_THROW(value_of(session, "0"), SignatureError);
  EXPECT_EQ(server_.count("/queries"), queries + 1);
  EXPECT_EQ(server_.count(old_.epoch()), 0u);
  EXPECT_EQ(session.signer()->sequence, 20u);
  server_.database = signed_by(key_, new_, 20);
  EXPECT_TRUE(value_of(session, "0")) << "after the lie it can be used again";
}

TEST_F(LyingServerTest, OtherServersAreRememberedApart) {
  server_.database = signed_by(key_, new_, 20);
  keyed();
  server_.database = signed_by(key_, old_, 10);
  EXPECT_NO_THROW(
      Session(std::make_unique<FakeTransport>(server_), "http://other", options(public_key_)));
}

TEST_F(LyingServerTest, WithoutAKeyTheFirstSignerIsRememberedAndAnotherOneTold) {
  EXPECT_EQ(warning(), "") << "never signed";
  server_.database = signed_by(key_, old_, 5);
  EXPECT_EQ(warning(), "");
  server_.database = signed_by(other_key_, new_, 9);
  for (int i = 0; i < 2; ++i) {  // until somebody accepts the key
    EXPECT_THAT(warning(), AllOf(HasSubstr("was signed by " + public_key_),
                                 HasSubstr("now is by " + other_public_key_)));
  }
  EXPECT_EQ(seen().newest.count(other_public_key_), 0u);
  session(options(other_public_key_));
  EXPECT_EQ(warning(), "");
  EXPECT_EQ(seen().signer, other_public_key_);
}

TEST_F(LyingServerTest, WithoutAKeyAMissingSignatureIsTold) {
  server_.database = signed_by(key_, old_, 5);
  keyless();
  server_.database = new_;
  Session session = keyless();
  EXPECT_THAT(session.signer()->warning,
              AllOf(HasSubstr("was signed by " + public_key_), HasSubstr("now is not signed")));
  EXPECT_EQ(session.signer()->signer, "");
  EXPECT_TRUE(value_of(session, "0"));
}

TEST_F(LyingServerTest, WithoutAKeyAnOlderManifestAndASecondOneAreTold) {
  server_.database = signed_by(key_, old_, 5);
  keyless();
  server_.database = signed_by(key_, new_, 4);
  EXPECT_THAT(warning(), HasSubstr("rolled back"));
  EXPECT_EQ(session(options(std::nullopt, true)).signer()->warning, "");
  server_.database = signed_by(key_, new_, 5);
  EXPECT_THAT(warning(), HasSubstr("two different manifests with the same sequence number"));
  EXPECT_EQ(seen().newest.at(public_key_).sequence, 5u);
  // What was seen without a key counts for those who have it.
  server_.database = signed_by(key_, new_, 4);
  EXPECT_THAT(refusal(), HasSubstr("rolled back"));
}

// A lying server cannot spoil what the right key says later.
TEST_F(LyingServerTest, AnotherSignersNumberCountsForNothing) {
  server_.database = signed_by(other_key_, new_, kManifestIntegerMax / 2);
  keyless();
  refusal();
  server_.database = signed_by(key_, old_, 5);
  EXPECT_EQ(keyed().signer()->sequence, 5u);
}

TEST_F(LyingServerTest, WhatIsSentDoesNotDependOnSignatures) {
  const auto requests_with = [&](const ServedDatabase& database,
                                 const std::optional<std::string>& key) {
    ScratchFolder cache;
    server_.database = database;
    server_.requests.clear();
    ClientOptions options = this->options(key);
    options.cache_folder = cache.path();
    value_of(session(options), "1");
    std::vector<std::string> sent;
    for (const SeenRequest& request : server_.requests) {
      sent.push_back(request.method + " " + request.path + " " +
                     std::to_string(request.first_byte) + " " +
                     std::to_string(request.body.size()));
    }
    return sent;
  };
  const auto plain = requests_with(old_, std::nullopt);
  EXPECT_EQ(requests_with(signed_by(key_, old_, 5), std::nullopt), plain);
  EXPECT_EQ(requests_with(signed_by(key_, old_, 5), public_key_), plain);
}

TEST_F(LyingServerTest, WhatIsDamagedIsNotTakenForNothing) {
  server_.database = signed_by(key_, new_, 20);
  keyed();
  std::filesystem::resize_file(folder() / SeenSignersFile::kName, 20);
  server_.database = signed_by(key_, old_, 10);
  EXPECT_THAT(message_of<CacheError>([this] { keyed(); }),
              AllOf(HasSubstr(SeenSignersFile::kName), HasSubstr("damaged")));
}

TEST_F(LyingServerTest, ClientsAtOnceDoNotLoseTheHighestNumber) {
  keyless();  // makes the folder
  constexpr uint64_t kThreads = 8;
  constexpr uint64_t kRounds = 40;
  const SeenSignersFile file(folder());
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < kRounds; ++i) {
        SeenSigners mine;
        // Each has a key of its own, and one is everybody's.
        const std::string own(64, static_cast<char>('0' + t));
        mine.newest[own] = {i + 1, 0, std::string(64, 'a')};
        mine.newest[public_key_] = {i * kThreads + (t * 5) % kThreads + 1, 0, std::string(64, 'b')};
        file.update([&](SeenSigners& seen) { seen.merge(mine); });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const SeenSigners all = file.read();
  EXPECT_EQ(all.newest.size(), kThreads + 1);
  EXPECT_EQ(all.newest.at(public_key_).sequence, kThreads * kRounds);
  for (uint64_t t = 0; t < kThreads; ++t) {
    EXPECT_EQ(all.newest.at(std::string(64, static_cast<char>('0' + t))).sequence, kRounds);
  }
}

}  // namespace
}  // namespace blindfuse
