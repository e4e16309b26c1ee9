// What a build signs, when, and with which number.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "host/database/directory.h"
#include "host/publish/database_builder.h"
#include "src/base/errors.h"
#include "src/system/open_folder.h"
#include "tests/publish/builder_testing.h"

namespace blindfuse::builder_testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

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
