#include "host/server/serving/api_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/errors.h"
#include "tests/publish/builder_testing.h"

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
    try {
      const ApiKeys keys(file());
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }

  const TemporaryFolder folder_;
};

TEST_F(ApiKeysTest, FindsKeysByTheirHash) {
  write("# who may ask\n\n" + kAlice + "\n" + kBob);
  const ApiKeys keys(file());
  EXPECT_EQ(keys.count(), 2u);
  EXPECT_EQ(keys.find("Bearer secret-of-alice"), "alice");
  EXPECT_EQ(keys.find("Bearer secret-of-bob"), "bob");
}

TEST_F(ApiKeysTest, SkipsAByteOrderMark) {
  write("\xef\xbb\xbf" + kAlice);
  EXPECT_EQ(ApiKeys(file()).find("Bearer secret-of-alice"), "alice");
}

TEST_F(ApiKeysTest, TakesTheSchemeInAnyCase) {
  write(kAlice);
  const ApiKeys keys(file());
  for (const char* scheme : {"Bearer ", "bearer ", "BEARER ", "bEaReR "}) {
    EXPECT_EQ(keys.find(std::string(scheme) + "secret-of-alice"), "alice") << scheme;
  }
}

// RFC 9110, section 11.4.
TEST_F(ApiKeysTest, TakesSeveralSpacesAfterTheScheme) {
  write(kAlice);
  const ApiKeys keys(file());
  EXPECT_EQ(keys.find("Bearer  secret-of-alice"), "alice");
  EXPECT_EQ(keys.find("Bearer     secret-of-alice"), "alice");
  for (const char* header : {"Bearer\tsecret-of-alice", "Bearersecret-of-alice", "Bearer   ",
                             "Bearer secret-of -alice", "  Bearer secret-of-alice"}) {
    EXPECT_EQ(keys.find(header), std::nullopt) << header;
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

TEST_F(ApiKeysTest, FindsNothingElse) {
  write(kAlice + kBob);
  const ApiKeys keys(file());
  for (const char* header :
       {"",
        " ",
        "Bearer",
        "Bearer ",
        "Bearer  ",
        "secret-of-alice",
        "Basic secret-of-alice",
        "Bearer:secret-of-alice",
        "Bearersecret-of-alice",
        "Bearer\tsecret-of-alice",
        "Bearer secret-of-alic",
        "Bearer s",
        "Bearer secret-of-alice ",
        "Bearer secret-of-alicee",
        "Bearer SECRET-OF-ALICE",
        "Bearer secret-of-alicesecret-of-bob",
        "Bearer alice",
        "Bearer 2e63581f3ad310ec6d04ce0f6adb96d3a7808722dab1612486486190086013f6",
        "Bearer sha256:2e63581f3ad310ec6d04ce0f6adb96d3a7808722dab1612486486190086013f6",
        "Bearer Bearer secret-of-alice"}) {
    EXPECT_EQ(keys.find(header), std::nullopt) << header;
  }
  EXPECT_EQ(keys.find(std::string_view("Bearer secret-of-alice\0", 23)), std::nullopt);
  EXPECT_EQ(keys.find(std::string(100'000, 'B')), std::nullopt);
}

// The hash of nothing in the file admits no client, not even one that sends nothing.
TEST_F(ApiKeysTest, ANothingIsNoKey) {
  write(kNothing + kAlice);
  const ApiKeys keys(file());
  for (const char* header : {"", "Bearer", "Bearer ", "Basic x"}) {
    EXPECT_EQ(keys.find(header), std::nullopt) << header;
  }
  EXPECT_EQ(keys.find("Bearer secret-of-alice"), "alice");
}

TEST_F(ApiKeysTest, TakesLinesOfAnotherSystem) {
  write(kAlice.substr(0, kAlice.size() - 1) + "\r\n# x\r\n\r\n" + kBob.substr(0, kBob.size() - 1));
  const ApiKeys keys(file());
  EXPECT_EQ(keys.count(), 2u);
  EXPECT_EQ(keys.find("Bearer secret-of-bob"), "bob");
}

TEST_F(ApiKeysTest, RefusesLinesThatAreNone) {
  const std::string hash = kAlice.substr(kAlice.find("sha256:"), 7 + 64);
  const std::vector<std::string> lines = {std::string("alice"),
                                          "alice " + hash.substr(7),
                                          "alice sha256:",
                                          "alice sha256",
                                          "alice " + hash.substr(0, hash.size() - 1),
                                          "alice " + hash + "0",
                                          "alice " + hash + " ",
                                          "alice  " + hash,
                                          " alice " + hash,
                                          "alice\t" + hash,
                                          " " + hash,
                                          "al ice " + hash,
                                          "alice sha512:" + hash.substr(7),
                                          "alice SHA256:" + hash.substr(7),
                                          "al/ice " + hash,
                                          "alice sha256:" + std::string(64, 'g'),
                                          std::string(65, 'a') + " " + hash,
                                          "alice secret-key-put-here-by-mistake"};
  for (const std::string& line : lines) {
    const std::string refusal = refusal_of(kBob + "\n# x\n" + line + "\n");
    EXPECT_THAT(refusal, HasSubstr(file() + ", line 4: ")) << line;
    EXPECT_THAT(refusal, Not(HasSubstr("mistake"))) << "a key may be there";
    EXPECT_THAT(refusal, Not(HasSubstr(hash.substr(7, 32))));
  }
}

TEST_F(ApiKeysTest, RefusesAFileOfNobody) {
  EXPECT_THAT(refusal_of(""), HasSubstr(file()));
  EXPECT_THAT(refusal_of("# nobody\n\n"), HasSubstr("api-key"));
  EXPECT_THROW(ApiKeys(folder_ / "nowhere"), InputError);
  EXPECT_THROW(ApiKeys(folder_.path()), InputError);
}

TEST_F(ApiKeysTest, ReadsItsFileAgain) {
  write(kAlice);
  ApiKeys keys(file());
  write(kBob);
  EXPECT_EQ(keys.find("Bearer secret-of-alice"), "alice") << "not before it is asked to";
  keys.reload();
  EXPECT_EQ(keys.find("Bearer secret-of-alice"), std::nullopt);
  EXPECT_EQ(keys.find("Bearer secret-of-bob"), "bob");
}

TEST_F(ApiKeysTest, KeepsWhatItHasWhenTheFileIsBad) {
  write(kAlice);
  ApiKeys keys(file());
  for (const std::string& lines : {std::string("nonsense\n"), kBob + "nonsense\n"}) {
    write(lines);
    EXPECT_THROW(keys.reload(), InputError);
    EXPECT_EQ(keys.count(), 1u);
    EXPECT_EQ(keys.find("Bearer secret-of-alice"), "alice");
    EXPECT_EQ(keys.find("Bearer secret-of-bob"), std::nullopt);
  }
  std::filesystem::remove(file());
  EXPECT_THROW(keys.reload(), InputError);
  EXPECT_EQ(keys.find("Bearer secret-of-alice"), "alice");
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

TEST_F(ApiKeysTest, ReadsLinesWithANote) {
  const std::string alice = kAlice;
  const std::string text =
      alice.substr(0, alice.size() - 1) + " 2026-01-02T03:04:05Z bfk_1a2b3c\r\n" + alice;
  write(text);
  EXPECT_EQ(ApiKeys(file()).find("Bearer secret-of-alice"), "alice");
  const auto listed = list_api_keys(text, file());
  ASSERT_EQ(listed.size(), 2u);
  EXPECT_EQ(listed[0].note, "2026-01-02T03:04:05Z bfk_1a2b3c");
  EXPECT_EQ(listed[1].note, "");
  EXPECT_EQ(without_api_keys(text, "alice"), "");
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

}  // namespace
}  // namespace blindfuse::server_testing
