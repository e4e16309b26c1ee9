// Manifests whose numbers of two levels contradict each other: a client refuses them, and asks the
// server for nothing else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "client/session.h"
#include "src/base/hex.h"
#include "tests/client/fake_server.h"
#include "tests/client/look_ups.h"
#include "tests/client/scratch_folder.h"

namespace blindfuse {
namespace {

using nlohmann::json;

struct ManifestChange {
  const char* name;     // of the test
  json members;         // what they are changed to; null: left out
  const char* refusal;  // a part of the error
};

void PrintTo(const ManifestChange& change, std::ostream* out) { *out << change.name; }

class ContradictingLevels : public ::testing::TestWithParam<ManifestChange> {
 protected:
  // Five shards of 100 columns, and groups of two: G = 3. The short key packs 256 columns.
  const ServedDatabase database_ = ServedDatabase::with_noise(5, 100, 0, "ring-2048", 18)
                                       .with_second_level({.group_shards = 2,
                                                           .query_bits = 25,
                                                           .mask_bits = 19,
                                                           .response_bits = 13,
                                                           .key_order = 256});

  // The manifest with these members, and the epoch id that follows.
  std::string altered(const json& changes) const {
    json members = json::parse(database_.manifest_text());
    for (const auto& [name, value] : changes.items()) {
      if (value.is_null()) {
        members.erase(name);
      } else {
        members[name] = value;
      }
    }
    members.erase("epoch");
    members["epoch"] = encode_hex(
        reference_pir::sha256(reference_pir::bytes_of("blindfuse/epoch/1" + members.dump())));
    return members.dump();
  }

  Session session(FakeServer& server) const {
    ClientOptions options;
    options.cache_folder = scratch_.path();
    return Session(std::make_unique<FakeTransport>(server), "http://test", std::move(options));
  }

  const ScratchFolder scratch_;
};

TEST_P(ContradictingLevels, AreRefusedBeforeAnythingElseIsAskedFor) {
  FakeServer server(database_);
  const std::string text = altered(GetParam().members);
  server.alter_body = [&](Bytes& body) { body.assign(text.begin(), text.end()); };
  std::string message;
  try {
    Session session = this->session(server);
    value_of(session, "1");
  } catch (const std::exception& error) {
    message = error.what();
  }
  EXPECT_THAT(message, ::testing::HasSubstr(GetParam().refusal));
  EXPECT_GE(server.requests.size(), 1u);
  EXPECT_EQ(server.count("/shards") + server.count("/hint") + server.count("/queries"), 0u);
}

INSTANTIATE_TEST_SUITE_P(
    Manifests, ContradictingLevels,
    ::testing::Values(
        ManifestChange{"NoGroups", {{"shards_a_group", nullptr}}, "shards_a_group"},
        ManifestChange{"NoQueryBits", {{"query2_bits", nullptr}}, "query2_bits"},
        ManifestChange{"NoMaskBits", {{"mask2_bits", nullptr}}, "mask2_bits"},
        ManifestChange{"NoResponseBits", {{"response2_bits", nullptr}}, "response2_bits"},
        ManifestChange{"NoKeyOrder", {{"short_key_order", nullptr}}, "short_key_order"},
        ManifestChange{"NoLevels", {{"levels", nullptr}}, "levels"},
        ManifestChange{"ThreeLevels", {{"levels", 3}}, "levels"},
        ManifestChange{"GroupsOfNone", {{"shards_a_group", 0}}, "shards_a_group"},
        ManifestChange{"GroupsOfMoreThanAllShards", {{"shards_a_group", 6}}, "shards_a_group"},
        // 3 * 100 columns, and 256 that the key packs; and 5 * 300 columns in groups of a pack.
        ManifestChange{"GroupsWiderThanTheKey", {{"shards_a_group", 3}}, "short_key_order"},
        ManifestChange{"GroupsWiderThanAPack",
                       {{"shards_a_group", 5}, {"value_bytes", 300}, {"short_key_order", 0}},
                       "at most 1024"},
        ManifestChange{"KeyShorterThanAGroup", {{"short_key_order", 128}}, "short_key_order"},
        ManifestChange{"KeyOfNoPowerOfTwo", {{"short_key_order", 384}}, "short_key_order"},
        ManifestChange{"KeyAsLongAsTheFirst", {{"short_key_order", 1024}}, "short_key_order"},
        ManifestChange{"TooFewQueryBits", {{"query2_bits", 15}}, "query2_bits"},
        ManifestChange{"TooManyQueryBits", {{"query2_bits", 33}}, "query2_bits"},
        ManifestChange{"TooFewMaskBits", {{"mask2_bits", 15}}, "mask2_bits"},
        ManifestChange{"TooManyMaskBits", {{"mask2_bits", 33}}, "mask2_bits"},
        ManifestChange{"ResponseBitsOfTheFirstLevel", {{"response2_bits", 10}}, "response2_bits"},
        ManifestChange{"TooManyResponseBits", {{"response2_bits", 33}}, "response2_bits"},
        ManifestChange{"FirstLevelOfTooManyBits", {{"response_bits", 22}}, "response_bits"},
        // The entries that the second level gives would often be wrong: 2^(31 - 12) leaves no room.
        ManifestChange{"FirstLevelOfTooManyBitsForTheNoise",
                       {{"response_bits", 12}, {"response2_bits", 13}},
                       "2^-40"}),
    [](const auto& made) { return std::string(made.param.name); });

}  // namespace
}  // namespace blindfuse
