#include "client/manifest_guard.h"

#include <blindfuse/errors.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/client/client_testing.h"

namespace blindfuse {
namespace {

const std::string kKey(64, 'a');
const std::string kOther(64, 'b');
const std::string kContent(64, 'c');

SeenSigners some() {
  SeenSigners seen;
  seen.signer = kKey;
  seen.newest[kKey] = {7, 1'795'545'000, kContent};
  seen.newest[kOther] = {(uint64_t{1} << 53) - 1, 0, std::string(64, 'd')};
  return seen;
}

TEST(SeenSigners, AreReadAsTheyWereWritten) {
  EXPECT_EQ(parse_seen_signers(serialize_seen_signers(some())), some());
  EXPECT_EQ(parse_seen_signers(serialize_seen_signers({})), SeenSigners());
}

TEST(SeenSigners, RefuseAnythingElse) {
  const std::string good = serialize_seen_signers(some());
  for (size_t size = 0; size + 2 < good.size(); ++size) {
    EXPECT_THROW(parse_seen_signers(good.substr(0, size)), InputError) << size;
  }
  const auto with = [&](const std::string& what, const std::string& instead) {
    std::string text = good;
    return text.replace(text.find(what), what.size(), instead);
  };
  for (const std::string& bad :
       {with("blindfuse-signers/1", "blindfuse-signers/2"), with(": 7", ": -7"),
        with(": 7", ": \"7\""), with(": 7", ": 9007199254740992"),
        with("\"signer\": \"a", "\"signer\": \"A"), with(kContent, "cc"), with("\"time\"", "\"x\""),
        std::string("[]"), std::string("null"), std::string(100'000, '[')}) {
    EXPECT_THROW(parse_seen_signers(bad), InputError) << bad;
  }
}

TEST(SeenSigners, MergeKeepsTheNewestOfEachAndTheFirstSigner) {
  SeenSigners seen = some();
  SeenSigners other;
  other.signer = kOther;
  other.newest[kKey] = {8, 1, kContent};
  other.newest[kOther] = {1, 2, kContent};
  other.newest[kContent] = {3, 3, kContent};
  seen.merge(other);
  EXPECT_EQ(seen.signer, kKey);
  EXPECT_EQ(seen.newest.at(kKey), (SeenManifest{8, 1, kContent}));
  EXPECT_EQ(seen.newest.at(kOther), some().newest.at(kOther));
  EXPECT_EQ(seen.newest.at(kContent), (SeenManifest{3, 3, kContent}));
  SeenSigners nothing;
  nothing.merge(some());
  EXPECT_EQ(nothing, some());
}

TEST(SeenSignersFile, IsWrittenOnlyWhenSomethingChanged) {
  const ScratchFolder folder;
  const SeenSignersFile file(folder.path());
  EXPECT_EQ(file.read(), SeenSigners());
  file.update([](SeenSigners&) {});
  EXPECT_FALSE(std::filesystem::exists(folder.path() / SeenSignersFile::kName));
  file.update([](SeenSigners& seen) { seen = some(); });
  EXPECT_EQ(file.read(), some());
  EXPECT_THROW(file.update([](SeenSigners& seen) {
    seen = {};
    throw InputError("no");
  }),
               InputError);
  EXPECT_EQ(file.read(), some());
}

}  // namespace
}  // namespace blindfuse
