// Signatures by OpenSSL, against RFC 8032's examples and those of the scheme in plain Python.
#include "src/protocol/ed25519.h"

#include <gtest/gtest.h>

#include <string>

#include "src/protocol/manifest.h"
#include "tests/support.h"
#include "tests/vectors.h"

namespace blindfuse {
namespace {

using vectors::array_from_hex;
using vectors::json;

const json& ed25519_vectors() {
  static const json file = vectors::read_vectors("signature.json");
  return file;
}

bool is_right(const json& c) {
  return verify_ed25519(array_from_hex<32>(c.at("public_key")),
                        vectors::string_from_hex(c.at("message")),
                        array_from_hex<64>(c.at("signature")));
}

TEST(Ed25519, TakesTheExamplesOfTheRfc) {
  ASSERT_EQ(ed25519_vectors().at("ed25519").size(), 3u);
  for (const json& c : ed25519_vectors().at("ed25519")) EXPECT_TRUE(is_right(c)) << c;
}

TEST(Ed25519, RefusesEverythingElse) {
  ASSERT_EQ(ed25519_vectors().at("ed25519_wrong").size(), 8u);
  for (const json& c : ed25519_vectors().at("ed25519_wrong")) EXPECT_FALSE(is_right(c)) << c;
  const json good = ed25519_vectors().at("ed25519").at(2);
  for (const char* member : {"public_key", "message", "signature"}) {
    const auto digits = good.at(member).get<std::string>();
    for (size_t at = 0; at < digits.size(); ++at) {
      json changed = good;
      std::string text = digits;
      text[at] = text[at] == '0' ? '1' : '0';
      changed[member] = text;
      EXPECT_FALSE(is_right(changed)) << member << " " << at;
    }
  }
}

TEST(ManifestSignatures, AreRightInTheVectors) {
  for (const json& c : ed25519_vectors().at("signed")) {
    const ParsedManifest parsed = parse_manifest(c.at("text").get<std::string>());
    EXPECT_TRUE(is_rightly_signed(parsed)) << c.at("name");
    EXPECT_NO_THROW(check_signature(parsed)) << c.at("name");
  }
}

TEST(ManifestSignatures, AreWrongWhereAnythingElseWasSigned) {
  ASSERT_EQ(ed25519_vectors().at("wrong").size(), 9u);
  for (const json& c : ed25519_vectors().at("wrong")) {
    const ParsedManifest parsed = parse_manifest(c.at("text").get<std::string>());
    EXPECT_FALSE(is_rightly_signed(parsed)) << c.at("change");
    EXPECT_NE(support::input_error_of([&] { check_signature(parsed); }).find("signature is wrong"),
              std::string::npos)
        << c.at("change");
  }
}

TEST(ManifestSignatures, AreMissingInAManifestWithout) {
  const json unsigned_one = vectors::read_vectors("manifest.json").at("valid").at(0).at("text");
  const ParsedManifest parsed = parse_manifest(unsigned_one.get<std::string>());
  EXPECT_FALSE(parsed.signature);
  EXPECT_FALSE(is_rightly_signed(parsed));
  EXPECT_NO_THROW(check_signature(parsed));
}

// Every character of the text replaced: refused, of the same signature, or wrongly signed.
TEST(ManifestSignatures, CoverEveryCharacter) {
  const std::string text = ed25519_vectors().at("signed").at(0).at("text");
  const ParsedManifest original = parse_manifest(text);
  size_t parsed_count = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    for (const char c : {'0', '1', 'a', ' ', '"'}) {
      if (text[at] == c) continue;
      std::string altered = text;
      altered[at] = c;
      try {
        const ParsedManifest parsed = parse_manifest(altered);
        ++parsed_count;
        if (parsed.signature == original.signature && parsed.signed_text == original.signed_text) {
          continue;
        }
        EXPECT_FALSE(is_rightly_signed(parsed)) << altered;
      } catch (const InputError&) {
      }
    }
  }
  EXPECT_GT(parsed_count, 200u);
}

}  // namespace
}  // namespace blindfuse
