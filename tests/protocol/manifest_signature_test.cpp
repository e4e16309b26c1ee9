// The form of a manifest's signature, and what it is made for. Whether it is right:
// ed25519_test.cpp.
#include "src/protocol/manifest.h"

#include <gtest/gtest.h>

#include <string>

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

}  // namespace
}  // namespace blindfuse
