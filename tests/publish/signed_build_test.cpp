#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>

#include "host/database/directory.h"
#include "host/publish/database_builder.h"
#include "host/publish/signing_key.h"
#include "src/base/errors.h"
#include "src/system/open_folder.h"
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

// What a build signs, when, and with which number.
using ::testing::AllOf;

constexpr uint64_t kNow = 1'795'545'000;

SigningKey key_from(uint8_t fill) {
  return SigningKey::make([fill](std::span<uint8_t> bytes) { std::ranges::fill(bytes, fill); });
}

class SignedBuild : public ::testing::Test {
 protected:
  const TemporaryFolder folder_;
  const SigningKey key_ = key_from(1);
  const SigningKey other_key_ = key_from(2);
  Pairs pairs_ = {{"a", "1"}, {"b", "2"}, {"c", "3"}};
  uint64_t now_ = kNow;

  std::filesystem::path root() const { return folder_ / "db"; }

  BuildOptions options(const SigningKey* key) const {
    BuildOptions options;
    options.lwe = find_lwe_params("lwe-1288");  // the quickest
    options.signing_key = key;
    options.clock = [this] { return now_; };
    return options;
  }
  BuildReport build(const SigningKey* key) const {
    return builder_testing::build(pairs_, root(), options(key));
  }
  ParsedManifest manifest() const { return DatabaseDirectory(root()).read_manifest(); }
  FileIdentity identity() const {
    return OpenFolder(root()).status(DatabaseDirectory::kManifestFile)->identity;
  }
  bool has_retired() const {
    return std::filesystem::exists(root() / DatabaseDirectory::kRetiredFile);
  }
  std::string refusal(const BuildOptions& options) const {
    return build_refusal(pairs_, root(), options);
  }

  // With what a manifest says that was changed after it was signed.
  void spoil_signature() const {
    const ParsedManifest parsed = manifest();
    ManifestSignature wrong = *parsed.signature;
    wrong.sequence = kManifestIntegerMax - 1;
    std::ofstream(DatabaseDirectory(root()).manifest_file())
        << serialize_manifest(parsed.manifest, wrong);
  }
};

TEST_F(SignedBuild, SignsTheFirstEpochWithTheTimeForItsNumber) {
  const BuildReport report = build(&key_);
  const ParsedManifest parsed = manifest();
  ASSERT_TRUE(parsed.signature);
  EXPECT_TRUE(is_rightly_signed(parsed));
  EXPECT_EQ(parsed.signature->sequence, kNow);
  EXPECT_EQ(parsed.signature->time, kNow);
  EXPECT_EQ(parsed.signature->signer, key_.public_key());
  EXPECT_EQ(report.signature, parsed.signature);
  EXPECT_TRUE(report.changed);
  EXPECT_TRUE(report.signature_changed);
  EXPECT_NO_THROW(load(root()));
}

TEST_F(SignedBuild, PublishesNothingWhenNothingChanged) {
  build(&key_);
  const ParsedManifest before = manifest();
  const FileIdentity file = identity();
  now_ += 100;
  const BuildReport report = build(&key_);
  EXPECT_EQ(identity(), file);
  EXPECT_FALSE(report.changed);
  EXPECT_FALSE(report.signature_changed);
  EXPECT_EQ(report.signature, before.signature);
}

TEST_F(SignedBuild, NumbersRiseWithTheTimeAndWithoutIt) {
  build(&key_);
  const auto next = [&](uint64_t now) {
    now_ = now;
    pairs_[0].second += "x";
    return build(&key_).signature->sequence;
  };
  EXPECT_EQ(next(kNow + 100), kNow + 100);
  EXPECT_EQ(next(kNow + 100), kNow + 101) << "twice in a second";
  EXPECT_EQ(next(kNow - 5'000), kNow + 102) << "a clock that went back";
  EXPECT_EQ(manifest().signature->time, kNow - 5'000);
  EXPECT_TRUE(is_rightly_signed(manifest()));
  std::filesystem::remove_all(root());
  EXPECT_EQ(next(kNow + 200), kNow + 200) << "a new directory continues above";
  EXPECT_EQ(next(0), kNow + 201);
}

// What the programs say of all this: programs/signing_test.cpp.
TEST_F(SignedBuild, AnotherSignerOrNoneKeepsTheEpochAndAllFiles) {
  build(nullptr);
  const EpochId epoch = manifest().epoch;
  std::optional<uint64_t> sequence;
  for (const SigningKey* key : {&key_, &other_key_}) {
    const BuildReport report = build(key);
    EXPECT_FALSE(report.changed);
    EXPECT_TRUE(report.signature_changed);
    EXPECT_EQ(report.shards_rebuilt, 0u);
    EXPECT_EQ(manifest().epoch, epoch);
    EXPECT_EQ(manifest().signature->signer, key->public_key());
    EXPECT_EQ(manifest().signature->sequence, sequence ? *sequence + 1 : kNow);
    sequence = manifest().signature->sequence;
    EXPECT_TRUE(is_rightly_signed(manifest()));
    EXPECT_FALSE(has_retired());
    EXPECT_NO_THROW(load(root()));
  }
  BuildOptions unsigned_again = options(nullptr);
  unsigned_again.drop_signature = true;
  EXPECT_TRUE(builder_testing::build(pairs_, root(), unsigned_again).signature_changed);
  EXPECT_FALSE(builder_testing::build(pairs_, root(), unsigned_again).signature_changed);
}

TEST_F(SignedBuild, AWrongSignatureIsADamagedDatabase) {
  build(&key_);
  spoil_signature();
  EXPECT_THAT(refusal(options(&key_)),
              AllOf(HasSubstr("signature is wrong"), HasSubstr("--fresh")));
  EXPECT_THROW(load(root()), InputError);
  BuildOptions fresh = options(nullptr);
  fresh.fresh = true;
  EXPECT_THAT(refusal(fresh), HasSubstr("is signed")) << "whoever signed it";
  fresh.signing_key = &key_;
  builder_testing::build(pairs_, root(), fresh);
  EXPECT_EQ(manifest().signature->sequence, kNow) << "what was wrong says nothing of numbers";
  EXPECT_TRUE(is_rightly_signed(manifest()));
  EXPECT_NO_THROW(load(root()));
}

// A signature is not lost by accident, whatever else is asked for.
TEST_F(SignedBuild, AManifestThatCannotBeReadKeepsTheRule) {
  build(&key_);
  const FileIdentity before = identity();
  BuildOptions fresh = options(nullptr);
  fresh.fresh = true;
  pairs_[0].second = "new";
  EXPECT_THAT(refusal(fresh), HasSubstr("is signed by " + encode_hex(key_.public_key())));
  EXPECT_EQ(identity(), before);
  const auto file = DatabaseDirectory(root()).manifest_file();
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 5);
  EXPECT_THAT(refusal(fresh), HasSubstr("is signed"));
  fresh.drop_signature = true;
  EXPECT_TRUE(builder_testing::build(pairs_, root(), fresh).changed);
}

TEST_F(SignedBuild, TheLastNumberIsTheLast) {
  now_ = kManifestIntegerMax;
  EXPECT_EQ(build(&key_).signature->sequence, kManifestIntegerMax);
  pairs_[0].second = "new";
  EXPECT_THAT(refusal(options(&key_)), HasSubstr("last number"));
}

}  // namespace
}  // namespace blindfuse::builder_testing
