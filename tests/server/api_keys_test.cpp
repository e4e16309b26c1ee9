#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "host/server/serving/api_keys.h"
#include "host/server/serving/epoch_reloader.h"
#include "tests/publish/builder_testing.h"
#include "tests/support.h"

namespace blindfuse::server_testing {
namespace {

using builder_testing::TemporaryFolder;
using ::testing::HasSubstr;
using ::testing::Not;

// $ printf secret-of-alice | sha256sum, and so on
const std::string kAlice =
    "alice sha256:2e63581f3ad310ec6d04ce0f6adb96d3a7808722dab1612486486190086013f6\n";
const std::string kBob =
    "bob sha256:f6dbcfeb957b327b63c0705f1348f75715f09f5020903b696c43e66a53d0f189\n";
const std::string kNothing =
    "nobody sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\n";

class ApiKeysTest : public ::testing::Test {
 protected:
  void write(const std::string& lines) const { std::ofstream(file(), std::ios::binary) << lines; }
  std::string file() const { return folder_ / "keys"; }

  // What a file with these lines is refused with; empty when it is not.
  std::string refusal_of(const std::string& lines) const {
    write(lines);
    return support::input_error_of([&] { const ApiKeys keys(file()); });
  }

  const TemporaryFolder folder_;
};

TEST_F(ApiKeysTest, FindsKeysByTheirHash) {
  const std::string alice = kAlice.substr(0, kAlice.size() - 1);
  const std::string bob = kBob.substr(0, kBob.size() - 1);
  for (const std::string& lines :
       {"# who may ask\n\n" + kAlice + "\n" + kBob, "\xef\xbb\xbf" + kAlice + kBob,
        alice + "\r\n# x\r\n\r\n" + bob, alice + " 2026-01-02T03:04:05Z bfk_1a2b3c\r\n" + kBob}) {
    write(lines);
    const ApiKeys keys(file());
    EXPECT_EQ(keys.count(), 2u) << lines;
    EXPECT_EQ(keys.find("Bearer secret-of-alice"), "alice") << lines;
    EXPECT_EQ(keys.find("Bearer secret-of-bob"), "bob") << lines;
  }
}

// The scheme has no case, and any number of spaces after it (RFC 9110, section 11.4).
TEST_F(ApiKeysTest, TakesTheSchemeAsItIsWritten) {
  write(kAlice);
  const ApiKeys keys(file());
  for (const char* scheme :
       {"Bearer ", "bearer ", "BEARER ", "bEaReR ", "Bearer  ", "Bearer     "}) {
    EXPECT_EQ(keys.find(std::string(scheme) + "secret-of-alice"), "alice") << scheme;
  }
}

TEST_F(ApiKeysTest, ComparesEveryByteOfAHash) {
  const size_t digits = kAlice.find(':') + 1;
  for (size_t i = 0; i < 64; ++i) {
    std::string line = kAlice;
    line[digits + i] = line[digits + i] == '0' ? '1' : '0';
    write(line);
    EXPECT_EQ(ApiKeys(file()).find("Bearer secret-of-alice"), std::nullopt) << "digit " << i;
  }
}

// The hash of nothing in the file admits no client, not even one that sends nothing.
TEST_F(ApiKeysTest, FindsNothingElse) {
  write(kNothing + kAlice + kBob);
  const ApiKeys keys(file());
  const std::string hash = kAlice.substr(kAlice.find("sha256:"), 7 + 64);
  for (const std::string after :
       {"", "Bearer", "Bearer:secret-of-alice", "Bearersecret-of-alice", "Bearer\tsecret-of-alice",
        "  Bearer secret-of-alice", "Basic secret-of-alice", "secret-of-alice", " ", "Basic x"}) {
    EXPECT_EQ(keys.find(after), std::nullopt) << after;
  }
  for (const std::string& key :
       {std::string(), std::string("  "), std::string("secret-of-alic"), std::string("s"),
        std::string("secret-of-alice "), std::string("secret-of-alicee"),
        std::string("secret-of -alice"), std::string("SECRET-OF-ALICE"), std::string("alice"),
        std::string("secret-of-alicesecret-of-bob"), hash, hash.substr(7),
        std::string("Bearer secret-of-alice"), std::string("secret-of-alice\0", 16),
        std::string(100'000, 'B')}) {
    EXPECT_EQ(keys.find("Bearer " + key), std::nullopt) << key;
  }
}

TEST_F(ApiKeysTest, RefusesLinesThatAreNone) {
  const std::string hash = kAlice.substr(kAlice.find("sha256:"), 7 + 64), hex = hash.substr(7);
  for (const std::string& line :
       {"alice " + hex, "alice " + hash.substr(0, 70), "alice " + hash + "0", "alice " + hash + " ",
        "alice  " + hash, " alice " + hash, "alice\t" + hash, " " + hash, "al ice " + hash,
        "alice sha512:" + hex, "alice SHA256:" + hex, "al/ice " + hash,
        "alice sha256:" + std::string(64, 'g'), std::string(65, 'a') + " " + hash,
        std::string("alice"), std::string("alice sha256:"), std::string("alice sha256"),
        std::string("alice secret-key-put-here-by-mistake")}) {
    const std::string refusal = refusal_of(kBob + "\n# x\n" + line + "\n");
    EXPECT_THAT(refusal, HasSubstr(file() + ", line 4: ")) << line;
    EXPECT_THAT(refusal, Not(HasSubstr("mistake"))) << "a key may be there";
    EXPECT_THAT(refusal, Not(HasSubstr(hex.substr(0, 32))));
  }
}

TEST_F(ApiKeysTest, RefusesAFileOfNobody) {
  EXPECT_THAT(refusal_of(""), HasSubstr(file()));
  EXPECT_THAT(refusal_of("# nobody\n\n"), HasSubstr("api-key"));
  EXPECT_THROW(ApiKeys(folder_ / "nowhere"), InputError);
  EXPECT_THROW(ApiKeys(folder_.path()), InputError);
}

TEST_F(ApiKeysTest, KeepsWhatItHasUntilItReadsAGoodFile) {
  write(kAlice);
  ApiKeys keys(file());
  const auto expect_alice = [&] {
    EXPECT_EQ(keys.find("Bearer secret-of-alice"), "alice");
    EXPECT_EQ(keys.find("Bearer secret-of-bob"), std::nullopt);
  };
  for (const std::string& lines : {std::string("nonsense\n"), kBob + "nonsense\n"}) {
    write(lines);
    EXPECT_THROW(keys.reload(), InputError);
    expect_alice();
  }
  std::filesystem::remove(file());
  EXPECT_THROW(keys.reload(), InputError);
  write(kBob);
  expect_alice();
  keys.reload();
  EXPECT_EQ(keys.find("Bearer secret-of-alice"), std::nullopt);
  EXPECT_EQ(keys.find("Bearer secret-of-bob"), "bob");
}

// The last one may be taken back, too.
TEST_F(ApiKeysTest, LetsNobodyInWhenNoKeyIsLeft) {
  write(kAlice);
  ApiKeys keys(file());
  write("# nobody\n");
  keys.reload();
  EXPECT_EQ(keys.count(), 0u);
  EXPECT_EQ(keys.find("Bearer secret-of-alice"), std::nullopt);
  EXPECT_EQ(keys.find(""), std::nullopt);
}

TEST_F(ApiKeysTest, WritesTheLineThatItReads) {
  EXPECT_EQ(api_key_line("alice", "secret-of-alice") + "\n", kAlice);
  for (const char* name : {"", "a b", "a/b", "a\nb", "\xc3\xa4"}) {
    EXPECT_THROW(api_key_line(name, "key"), InputError) << name;
  }
  EXPECT_THROW(api_key_line(std::string(65, 'a'), "key"), InputError);
  const std::string longest(64, 'a');
  write(api_key_line(longest, "key") + "\n");
  EXPECT_EQ(ApiKeys(file()).find("Bearer key"), longest);
}

TEST_F(ApiKeysTest, MakesKeysOfAllItsRandomness) {
  const std::string key = make_api_key([](std::span<uint8_t> bytes) {
    EXPECT_EQ(bytes.size(), 32u);
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i);
  });
  EXPECT_EQ(key, "bfk_000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f");
  write(api_key_line("new", key) + "\n");
  EXPECT_EQ(ApiKeys(file()).find("bearer " + key), "new");
}

TEST(FileReloader, ReadsAgainForARequestThatComesWhileItReads) {
  std::promise<void> begun, go_on, twice;
  std::atomic<int> count = 0;
  FileReloader files([&] {
    if (++count == 2) return twice.set_value();
    begun.set_value();
    go_on.get_future().wait();
  });
  files.request();
  begun.get_future().wait();
  files.request();
  files.request();
  EXPECT_FALSE(files.stop(std::chrono::milliseconds(0))) << "the read does not return";
  go_on.set_value();
  twice.get_future().wait();
  EXPECT_TRUE(files.stop(std::chrono::minutes(1)));
  EXPECT_EQ(count, 2) << "once for all requests that came meanwhile";
}

TEST(FileReloader, EndsThoughNobodyAsked) {
  const FileReloader files([] { FAIL() << "nobody asked"; });
}

}  // namespace
}  // namespace blindfuse::server_testing
