#include "host/publish/signing_key.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>

#include "src/base/errors.h"
#include "tests/publish/builder_testing.h"
#include "tests/vectors.h"

namespace blindfuse::builder_testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

SigningKey key_of(const nlohmann::json& c) {
  const auto seed = vectors::array_from_hex<32>(c.at("seed"));
  return SigningKey::make(
      [&](std::span<uint8_t> bytes) { std::copy(seed.begin(), seed.end(), bytes.begin()); });
}

// RFC 8032, section 7.1.
TEST(SigningKey, SignsAsTheRfcDoes) {
  const nlohmann::json file = vectors::read_vectors("signature.json");
  for (const nlohmann::json& c : file.at("ed25519")) {
    const SigningKey key = key_of(c);
    EXPECT_EQ(key.public_key(), vectors::array_from_hex<32>(c.at("public_key")));
    EXPECT_EQ(key.sign(vectors::string_from_hex(c.at("message"))),
              vectors::array_from_hex<64>(c.at("signature")));
  }
}

TEST(SigningKey, SignsManifestsAsTheVectorsDo) {
  const nlohmann::json file = vectors::read_vectors("signature.json");
  for (const nlohmann::json& c : file.at("signed")) {
    if (c.at("name") == "unknown-members") continue;
    const SigningKey key = key_of(c);
    const ParsedManifest parsed = parse_manifest(c.at("text").get<std::string>());
    EXPECT_EQ(key.sign(parsed.manifest, parsed.signature->sequence, parsed.signature->time),
              *parsed.signature);
  }
}

TEST(SigningKey, ComesBackFromItsFile) {
  const TemporaryFolder folder;
  const SigningKey key = SigningKey::make(fill_from_system);
  EXPECT_NE(SigningKey::make(fill_from_system).public_key(), key.public_key());
  key.write(folder / "key");
  const SigningKey again = SigningKey::read(folder / "key");
  EXPECT_EQ(again.public_key(), key.public_key());
  EXPECT_EQ(again.sign("message"), key.sign("message"));
}

TEST(SigningKey, IsForItsOwnerAloneWhateverTheUmask) {
  const TemporaryFolder folder;
  const mode_t before = umask(0);
  SigningKey::make(fill_from_system).write(folder / "key");
  umask(before);
  struct stat status {};
  ASSERT_EQ(stat((folder / "key").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
}

TEST(SigningKey, ReplacesNothing) {
  const TemporaryFolder folder;
  const SigningKey key = SigningKey::make(fill_from_system);
  std::ofstream(folder / "file") << "dear";
  fs::create_symlink("nowhere", folder / "link");
  fs::create_directory(folder / "folder");
  for (const char* name : {"file", "link", "folder"}) {
    EXPECT_THAT(support::input_error_of([&] { key.write(folder / name); }), HasSubstr("exists"));
  }
  EXPECT_EQ(read_whole(folder / "file"), "dear");
  EXPECT_FALSE(fs::exists(folder / "nowhere"));
  EXPECT_THROW(key.write(folder / "missing" / "key"), InputError);
}

TEST(SigningKey, RefusesWhatIsNotItsFile) {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& text) {
    std::ofstream(folder / "key") << text;
    return support::input_error_of([&] { SigningKey::read(folder / "key"); });
  };
  SigningKey::make(fill_from_system).write(folder / "good");
  const std::string good = read_whole(folder / "good");
  EXPECT_THAT(good, ::testing::StartsWith("-----BEGIN PRIVATE KEY-----\n"));
  for (const std::string& bad :
       {std::string(), std::string("no key"), good.substr(0, 60), std::string(64, 'a') + "\n"}) {
    EXPECT_THAT(refusal(bad), HasSubstr("not a private key")) << bad;
  }
  // By `openssl genpkey -algorithm X25519`: of another kind.
  EXPECT_THAT(refusal("-----BEGIN PRIVATE KEY-----\n"
                      "MC4CAQAwBQYDK2VuBCIEIDhY2zJC8yUJJl05jZU/DvF+J8zqQ1/6d+Tc+cmGzNVj\n"
                      "-----END PRIVATE KEY-----\n"),
              HasSubstr("another kind than Ed25519"));
  EXPECT_THROW(SigningKey::read(folder / "missing"), InputError);
}

}  // namespace
}  // namespace blindfuse::builder_testing
