#include "src/protocol/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/reference_pir.h"
#include "tests/support.h"
#include "tests/vectors.h"

namespace blindfuse {
namespace {

using namespace std::string_literals;
using support::input_error_of;
using vectors::array_from_hex;
using vectors::json;

const json& manifest_vectors() {
  static const json file = vectors::read_vectors("manifest.json");
  return file;
}

// The epoch id, computed away from the product.
std::string epoch_of(json members) {
  members.erase("epoch");
  return vectors::to_hex(
      reference_pir::sha256(reference_pir::bytes_of("blindfuse/epoch/1" + members.dump())));
}

json with_epoch(json members) {
  members["epoch"] = epoch_of(members);
  return members;
}

// The text of the first valid manifest with something else in it, and the epoch id that follows.
std::string altered_text(const json& change) {
  json members = manifest_vectors().at("valid").at(0).at("manifest");
  members.update(change);
  return with_epoch(members).dump();
}

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return text;
}

void expect_members(const Manifest& manifest, const json& m) {
  const Layout& layout = manifest.layout;
  EXPECT_EQ(layout.kind == DatabaseKind::kIndex ? "index" : "keyword", m.at("kind"));
  ASSERT_NE(layout.lwe, nullptr);
  EXPECT_EQ(layout.mode() == Mode::kPacked ? "packed" : "hint", m.at("mode"));
  EXPECT_EQ(layout.lwe->name, m.at("lwe").get<std::string>());
  EXPECT_EQ(layout.key_count, m.at("key_count"));
  EXPECT_EQ(layout.shard_count, m.at("shard_count"));
  EXPECT_EQ(layout.row_count, m.at("row_count"));
  EXPECT_EQ(layout.arity, m.at("arity"));
  EXPECT_EQ(layout.segment_length, m.at("segment_length"));
  EXPECT_EQ(layout.record.digest_bytes, m.at("digest_bytes"));
  EXPECT_EQ(layout.record.length_bytes, m.at("length_bytes"));
  EXPECT_EQ(layout.record.value_bytes, m.at("value_bytes"));
  EXPECT_EQ(layout.query_bits, m.at("query_bits"));
  EXPECT_EQ(layout.response_bits, m.at("response_bits"));
  EXPECT_EQ(layout.hint_bits, m.at("hint_bits"));
  const bool has_two = layout.mode() == Mode::kPacked && m.at("levels") == 2;
  ASSERT_EQ(layout.second.has_value(), has_two);
  if (has_two) {
    EXPECT_EQ(layout.second->group_shards, m.at("shards_a_group"));
    EXPECT_EQ(layout.second->query_bits, m.at("query2_bits"));
    EXPECT_EQ(layout.second->mask_bits, m.at("mask2_bits"));
    EXPECT_EQ(layout.second->response_bits, m.at("response2_bits"));
    EXPECT_EQ(layout.second->key_order, m.at("short_key_order"));
  }
  ASSERT_EQ(layout.batch.has_value(), m.contains("bucket_count"));
  if (layout.batch) {
    EXPECT_EQ(layout.batch->keys_per_request, m.at("keys_per_request"));
    EXPECT_EQ(layout.batch->bucket_count, m.at("bucket_count"));
  }
  EXPECT_EQ(manifest.salt, array_from_hex<kSaltBytes>(m.at("salt")));
  EXPECT_EQ(manifest.seed, array_from_hex<32>(m.at("seed")));
  EXPECT_EQ(manifest.table, array_from_hex<32>(m.at("table")));
  EXPECT_EQ(manifest.samples, array_from_hex<32>(m.at("samples")));
}

// Next to 21 that every manifest has: in the mode "packed" also how many levels there are, and five
// numbers of a second one, or two of requests for several keys.
bool has_unknown_members(const json& m) {
  const size_t of_mode = m.at("mode") != "packed" ? 0 : m.at("levels") == 2 ? 6 : 1;
  const size_t of_batch = m.contains("bucket_count") ? 2 : 0;
  return m.size() > 21 + of_mode + of_batch;
}

TEST(Manifest, ParsesTheVectors) {
  for (const json& c : manifest_vectors().at("valid")) {
    SCOPED_TRACE(c.at("name"));
    const ParsedManifest parsed = parse_manifest(c.at("text").get<std::string>());
    EXPECT_EQ(nlohmann::json(parsed.epoch), c.at("manifest").at("epoch"));
    expect_members(parsed.manifest, c.at("manifest"));
  }
  for (const char* name : {"database_keyword.json", "database_index.json"}) {
    const json m = vectors::read_vectors(name).at("manifest");
    const ParsedManifest parsed = parse_manifest(m.dump());
    EXPECT_EQ(nlohmann::json(parsed.epoch), m.at("epoch"));
    expect_members(parsed.manifest, m);
  }
}

TEST(Manifest, WritesTheVectors) {
  for (const json& c : manifest_vectors().at("valid")) {
    if (has_unknown_members(c.at("manifest"))) continue;
    SCOPED_TRACE(c.at("name"));
    const ParsedManifest parsed = parse_manifest(c.at("text").get<std::string>());
    const std::string text = serialize_manifest(parsed.manifest);
    EXPECT_EQ(json::parse(text), c.at("manifest"));
    EXPECT_EQ(epoch_id(parsed.manifest), parsed.epoch);
    EXPECT_TRUE(text.ends_with("}\n"));
    EXPECT_EQ(parse_manifest(text).manifest, parsed.manifest);
    EXPECT_EQ(serialize_manifest(parse_manifest(text).manifest), text);
  }
}

TEST(Manifest, RefusesModesThatItDoesNotKnowOrThatContradictTheSet) {
  const auto message_of = [](const json& change) {
    return input_error_of([&] { parse_manifest(altered_text(change)); });
  };
  EXPECT_EQ(message_of({{"mode", "magic"}}),
            R"(manifest's "mode" is "magic"; this program knows "hint" and "packed")");
  EXPECT_EQ(message_of({{"mode", ""}}),
            R"(manifest's "mode" is ""; this program knows "hint" and "packed")");
  EXPECT_NE(message_of({{"mode", "Packed"}, {"lwe", "ring-2048"}}), "");
  EXPECT_EQ(message_of({{"lwe", "ring-2048"}}),
            R"(manifest's "mode" is "hint", but the parameter set ring-2048 is for "packed")");
  for (const std::string set : {"lwe-1774", "lwe-1572", "lwe-1288"}) {
    EXPECT_EQ(
        message_of({{"mode", "packed"}, {"lwe", set}}),
        "manifest's \"mode\" is \"packed\", but the parameter set " + set + " is for \"hint\"");
  }
  EXPECT_NE(message_of({{"mode", "packed"}, {"lwe", "ring-4096"}}).find("ring-4096"),
            std::string::npos);
}

TEST(Manifest, RefusesFormatsThatItDoesNotKnowOrThatContradictTheMode) {
  const auto message_of = [](const json& change) {
    return input_error_of([&] { parse_manifest(altered_text(change)); });
  };
  EXPECT_EQ(message_of({{"format", "blindfuse/4"}}),
            R"(manifest's "format" is "blindfuse/4"; this program knows "blindfuse/1", )"
            R"("blindfuse/2" and "blindfuse/3"; update it)");
  for (const char* newer : {"blindfuse/4", "blindfuse/10"}) {
    EXPECT_THROW(parse_manifest(altered_text({{"format", newer}})), NewerFormatError) << newer;
  }
  for (const char* other : {"blindfuse/0", "blindfuse/4x", "blindfuse/", "else/4"}) {
    EXPECT_THAT(
        [&] {
          parse_manifest(altered_text({{"format", other}}));
        },
        ::testing::Not(::testing::Throws<NewerFormatError>()))
        << other;
  }
  EXPECT_EQ(message_of({{"format", "blindfuse/2"}}),
            R"(manifest's "format" is "blindfuse/2", but this program knows the mode "hint" in )"
            R"("blindfuse/1" alone)");
  const json packed = {{"mode", "packed"}, {"lwe", "ring-2048"}, {"levels", 1}};
  const auto packed_with = [&](json change) {
    change.update(packed);
    return message_of(change);
  };
  EXPECT_EQ(packed_with({{"format", "blindfuse/3"}}),
            R"(manifest's "format" is "blindfuse/3", but it has neither "keys_per_request" nor )"
            R"("bucket_count")");
  EXPECT_EQ(packed_with({{"format", "blindfuse/2"}, {"bucket_count", 4}}),
            R"(manifest's "format" is "blindfuse/2", but requests for several keys have )"
            R"("blindfuse/3" alone)");
  // What version 0.2.0 built, which knew no levels.
  EXPECT_EQ(message_of({{"mode", "packed"}, {"lwe", "ring-2048"}}),
            R"(manifest's "format" is "blindfuse/1", but this program knows the mode "packed" in )"
            R"("blindfuse/2" alone; the database has to be built again by this version, with )"
            R"(--fresh)");
}

// What the message about an invalid manifest must hold one of. Changes read "row_count = 0, new
// epoch", "without salt, new epoch" or "epoch one digit short".
std::vector<std::string> words_that_name(const json& c) {
  const std::string reason = c.at("reason");
  if (reason == "epoch differs") return {"altered"};
  if (reason == "records of no bytes") return {"one byte"};
  if (reason == "more than 2^24 rows with 32 query_bits") return {"query_bits must be at most 31"};
  if (reason.starts_with("requests for several keys in")) return {"several keys"};
  if (reason == "members must not nest") return {"strings and integers"};
  if (reason == "not one JSON object") return {"not json", "not a json object", "strings and"};
  std::string member = c.at("change");
  if (member.starts_with("without ")) member = member.substr(8);
  member = member.substr(0, member.find_first_of(" ,"));
  if (member == "kind") return {"kind", "arity"};  // another kind wants another arity
  return {member};
}

TEST(Manifest, RefusesTheInvalidVectorsAndNamesWhatIsWrong) {
  size_t refused = 0;
  const json& file = manifest_vectors();
  for (const char* list : {"invalid", "invalid_cross_field"}) {
    for (const json& c : file.at(list)) {
      SCOPED_TRACE(c.at("change").get<std::string>() + ": " + c.at("reason").get<std::string>());
      const std::string text = c.at("text");
      const std::string message = input_error_of([&] { parse_manifest(text); });
      EXPECT_NE(message, "") << "accepted";
      refused += !message.empty();
      const auto words = words_that_name(c);
      EXPECT_TRUE(std::any_of(words.begin(), words.end(), [&](const std::string& word) {
        return lower_case(message).find(word) != std::string::npos;
      })) << message;
    }
  }
  EXPECT_EQ(refused, file.at("invalid").size() + file.at("invalid_cross_field").size());
  EXPECT_GT(refused, 120u);
}

TEST(Manifest, IgnoresUnknownMembersButCountsThemInTheEpoch) {
  const json valid = manifest_vectors().at("valid").at(0);
  const ParsedManifest plain = parse_manifest(valid.at("text").get<std::string>());
  for (const json& value : {json("text"), json(""), json(7), json(-7), json(INT64_MIN),
                            json(UINT64_MAX), json("quote \" and \\ and \n and \x7f")}) {
    const std::string text = altered_text({{"an_unknown_member", value}});
    const ParsedManifest parsed = parse_manifest(text);
    EXPECT_EQ(parsed.manifest, plain.manifest);
    EXPECT_NE(parsed.epoch, plain.epoch);
    json other = json::parse(text);
    other["an_unknown_member"] = 8;
    EXPECT_NE(input_error_of([&] { parse_manifest(other.dump()); }).find("altered"),
              std::string::npos);
  }
}

TEST(Manifest, RefusesNestedMembersHoweverDeep) {
  for (const json& value : {json::array(), json::object(), json::array({1}), json({{"a", 1}})}) {
    for (const char* member : {"an_unknown_member", "arity", "format"}) {
      EXPECT_NE(input_error_of([&] {
                  parse_manifest(altered_text({{member, value}}));
                }),
                "")
          << member << " = " << value;
    }
  }
  for (const size_t depth : {2, 1000, 30'000}) {
    std::string arrays(depth, '[');
    std::string objects;
    while (objects.size() < 2 * depth) objects += R"({"":)";
    for (const std::string& text :
         {arrays, arrays + std::string(depth, ']'), objects.substr(0, kManifestBytesMax),
          "{\"a\":" + arrays, "[{\"a\":" + arrays}) {
      EXPECT_NE(input_error_of([&] { parse_manifest(text); }), "") << depth;
    }
  }
}

TEST(Manifest, RefusesMoreThan64KiB) {
  std::string text = manifest_vectors().at("valid").at(0).at("text");
  const ParsedManifest plain = parse_manifest(text);
  text.insert(1, std::string(kManifestBytesMax - text.size(), ' '));
  ASSERT_EQ(text.size(), 65'536u);
  EXPECT_EQ(parse_manifest(text).manifest, plain.manifest);
  text.insert(1, " ");
  EXPECT_NE(input_error_of([&] { parse_manifest(text); }).find("65536"), std::string::npos);
  EXPECT_NE(input_error_of([] { parse_manifest(std::string(10'000'000, '[')); }), "");
}

// To the parser, a byte of zero is the end of the text.
TEST(Manifest, RefusesWhatFollowsAByteOfZero) {
  const std::string text = manifest_vectors().at("valid").at(0).at("text");
  for (const std::string& after : {std::string(), std::string("garbage"), text}) {
    const std::string altered = text + '\0' + after;
    EXPECT_EQ(input_error_of([&] { parse_manifest(altered); }),
              "manifest is not JSON: wrong at byte " + std::to_string(text.size() + 1));
  }
  EXPECT_NE(input_error_of([&] { parse_manifest('\0' + text); }), "");
}

// A message is shown on a terminal: nothing that a server wrote may end its line or run away.
TEST(Manifest, RefusesInOneLineWhateverItHolds) {
  const std::string wild = "line\nfeed \x1b[2J \x7f \xc3\xa9 " + std::string(50'000, 'x');
  for (const char* member : {"format", "mode", "kind", "lwe", "salt", "arity"}) {
    EXPECT_NE(input_error_of([&] { parse_manifest(altered_text({{member, wild}})); }), "");
  }
  for (const std::string& text :
       {wild, "\"" + wild, "{\"" + wild, "{\"" + wild + "\" 1}", "{\"a\": " + wild + "}",
        std::string(60'000, '1'), "{\"a\": \"\xff\"}"s, std::string(100, '\0'), "1e999"s}) {
    EXPECT_NE(input_error_of([&] { parse_manifest(text); }), "");
  }
}

// Every byte of a valid text replaced, taken out or doubled: refused, or the same manifest after
// all (white space). The first text sees every replacement, the others an eighth of them.
TEST(Manifest, SurvivesNoAlterationOfOneCharacter) {
  const std::string replacements = "0123456789abcdefA_\"{}[],:-+. \t\n\\/\x80\xff\0"s;
  size_t refused = 0;
  size_t identical = 0;
  size_t step = 1;
  for (const json& c : manifest_vectors().at("valid")) {
    const std::string text = c.at("text");
    const ParsedManifest original = parse_manifest(text);
    const auto alter = [&](const std::string& altered) {
      try {
        const ParsedManifest parsed = parse_manifest(altered);
        ASSERT_EQ(parsed.manifest, original.manifest) << altered;
        ASSERT_EQ(parsed.epoch, original.epoch) << altered;
        ++identical;
      } catch (const InputError&) {
        ++refused;
      }
    };
    for (size_t at = 0; at < text.size(); ++at) {
      std::string altered = text;
      for (size_t i = at % step; i < replacements.size(); i += step) {
        altered[at] = replacements[i];
        alter(altered);
      }
      alter(std::string(text).erase(at, 1));
      alter(std::string(text).insert(at, 1, text[at]));
      alter(std::string(text).insert(at, 1, ' '));
    }
    step = 8;
  }
  EXPECT_GT(refused, 30'000u);
  EXPECT_GT(identical, 300u);
}

}  // namespace
}  // namespace blindfuse
