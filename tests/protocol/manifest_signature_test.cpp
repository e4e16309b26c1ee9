// A manifest's signature: its form, what it is made for, and whether it is right.
#include <gtest/gtest.h>

#include <string>

#include "src/protocol/ed25519.h"
#include "src/protocol/manifest.h"
#include "tests/support.h"
#include "tests/vectors.h"

namespace blindfuse {
namespace {

using support::input_error_of;
using vectors::array_from_hex;
using vectors::json;

const json& signature_vectors() {
  static const json file = vectors::read_vectors("signature.json");
  return file;
}

bool has_later_member(const json& c) { return c.at("name") == "unknown-members"; }

TEST(ManifestSignature, ParsesAndWritesTheVectors) {
  ASSERT_EQ(signature_vectors().at("signed").size(), 4u);
  for (const json& c : signature_vectors().at("signed")) {
    SCOPED_TRACE(c.at("name"));
    const json& m = c.at("manifest");
    const ParsedManifest parsed = parse_manifest(c.at("text").get<std::string>());
    ASSERT_TRUE(parsed.signature);
    EXPECT_EQ(parsed.signature->sequence, m.at("sequence"));
    EXPECT_EQ(parsed.signature->time, m.at("time"));
    EXPECT_EQ(parsed.signature->signer, array_from_hex<32>(m.at("signer")));
    EXPECT_EQ(parsed.signature->signature, array_from_hex<64>(m.at("signature")));
    EXPECT_EQ(parsed.signed_text, c.at("signed_text").get<std::string>());
    if (!has_later_member(c)) {
      EXPECT_EQ(signed_text(parsed.manifest, *parsed.signature), parsed.signed_text);
      EXPECT_EQ(json::parse(serialize_manifest(parsed.manifest, parsed.signature)), m);
    }
  }
}

// Signing again, or by another key, does not change what clients have to download.
TEST(ManifestSignature, IsNoPartOfTheEpoch) {
  for (const json& c : signature_vectors().at("signed")) {
    SCOPED_TRACE(c.at("name"));
    json unsigned_one = c.at("manifest");
    for (const char* member : {"sequence", "time", "signer", "signature"}) {
      unsigned_one.erase(member);
    }
    const ParsedManifest parsed = parse_manifest(unsigned_one.dump());
    EXPECT_EQ(parsed.epoch, c.at("manifest").at("epoch").get<std::string>());
    EXPECT_FALSE(parsed.signature);
    EXPECT_EQ(parsed.signed_text, "");
    EXPECT_EQ(parse_manifest(c.at("text").get<std::string>()).manifest, parsed.manifest);
  }
}

TEST(ManifestSignature, RefusesTheInvalidVectorsAndNamesTheMember) {
  ASSERT_EQ(signature_vectors().at("invalid").size(), 25u);
  for (const json& c : signature_vectors().at("invalid")) {
    const std::string message =
        input_error_of([&] { parse_manifest(c.at("text").get<std::string>()); });
    EXPECT_NE(message.find("\"" + c.at("member").get<std::string>() + "\""), std::string::npos)
        << c.at("change") << ": " << message;
  }
}

TEST(PublicKeyText, IsSixtyFourLowerCaseDigits) {
  const std::string text = "00ff" + std::string(60, 'a');
  const auto key = parse_public_key(text);
  ASSERT_TRUE(key);
  EXPECT_EQ((*key)[0], 0x00);
  EXPECT_EQ((*key)[1], 0xff);
  EXPECT_EQ((*key)[31], 0xaa);
  for (const std::string& bad :
       {std::string(), std::string(63, 'a'), std::string(65, 'a'), std::string(66, 'a'),
        std::string(64, 'A'), std::string(64, 'g'), " " + std::string(63, 'a')}) {
    EXPECT_FALSE(parse_public_key(bad)) << bad;
  }
}

// By `date -u -d @SECONDS`.
TEST(UtcText, IsIso8601) {
  EXPECT_EQ(utc_text(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(utc_text(951'782'400), "2000-02-29T00:00:00Z");
  EXPECT_EQ(utc_text(1'795'545'000), "2026-11-24T18:30:00Z");
  EXPECT_EQ(utc_text(4'294'967'296), "2106-02-07T06:28:16Z");
  EXPECT_EQ(utc_text(253'402'300'799), "9999-12-31T23:59:59Z");
  EXPECT_EQ(utc_text(253'402'300'800), "second 253402300800");
  EXPECT_EQ(utc_text(kManifestIntegerMax), "second 9007199254740991");
  EXPECT_EQ(numbered(7, 0), "number 7 of 1970-01-01T00:00:00Z");
}

// Signatures by OpenSSL, against RFC 8032's examples and those of the scheme in plain Python.
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
