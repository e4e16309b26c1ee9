#include "host/ingest/text_encoding.h"

#include "host/ingest/key_value_source.h"
#include "tests/ingest/ingest_testing.h"

namespace blindfuse {
namespace {

using namespace ingest_testing;

const InputPlace kPlace{"words.tsv", "line", 3};

std::string decode(TextEncoding encoding, std::string_view text) {
  FieldDecoder decoder = value_decoder(encoding);
  return std::string(decoder.decode(text, kPlace));
}

std::string error(TextEncoding encoding, std::string_view text) {
  return error_of([&] { decode(encoding, text); });
}

TEST(TextEncoding, TakesUtf8AsItIs) {
  EXPECT_EQ(decode(TextEncoding::kUtf8, ""), "");
  EXPECT_EQ(decode(TextEncoding::kUtf8, "\xC3\xA9\0\xF4\x8F\xBF\xBF"sv),
            "\xC3\xA9\0\xF4\x8F\xBF\xBF"sv);
}

TEST(TextEncoding, RefusesWhatIsNotUtf8) {
  const std::string right = "; expected UTF-8, or bytes written as hex or base64";
  const std::string at_3 = "words.tsv, line 3: value is not UTF-8 at byte 3 ";
  EXPECT_EQ(error(TextEncoding::kUtf8,
                  "ab\xFF"
                  "c"),
            at_3 + "(\"\\xff\")" + right);
  EXPECT_EQ(error(TextEncoding::kUtf8, "ab\xC0\xAF"), at_3 + "(\"\\xc0\")" + right) << "overlong";
  EXPECT_EQ(error(TextEncoding::kUtf8, "ab\xED\xA0\x80"), at_3 + "(\"\\xed\")" + right)
      << "surrogate";
  EXPECT_EQ(error(TextEncoding::kUtf8, "ab\xF4\x90\x80\x80"), at_3 + "(\"\\xf4\")" + right)
      << "beyond U+10FFFF";
  EXPECT_EQ(error(TextEncoding::kUtf8, "ab\xC3"), at_3 + "(\"\\xc3\")" + right) << "cut short";
}

TEST(TextEncoding, DecodesHexOfEitherCase) {
  EXPECT_EQ(decode(TextEncoding::kHex, ""), "");
  EXPECT_EQ(decode(TextEncoding::kHex, "00fFAb7f"), "\x00\xFF\xAB\x7F"sv);
}

TEST(TextEncoding, RefusesWhatIsNotHex) {
  EXPECT_EQ(error(TextEncoding::kHex, "12g4"),
            "words.tsv, line 3: value is not hex at byte 3 (\"g\"); "
            "expected digits 0-9, a-f or A-F");
  EXPECT_EQ(error(TextEncoding::kHex, "12\xC3\xA9"),
            "words.tsv, line 3: value is not hex at byte 3 (\"\xC3\xA9\"); "
            "expected digits 0-9, a-f or A-F");
  EXPECT_EQ(error(TextEncoding::kHex, "0x12"),
            "words.tsv, line 3: value is not hex at byte 2 (\"x\"); "
            "expected digits 0-9, a-f or A-F");
  EXPECT_EQ(error(TextEncoding::kHex, "12 34"),
            "words.tsv, line 3: value is not hex at byte 3 (\" \"); "
            "expected digits 0-9, a-f or A-F");
  EXPECT_EQ(error(TextEncoding::kHex, "123"),
            "words.tsv, line 3: value has an odd number of hex digits (3); "
            "expected two for each byte");
}

TEST(TextEncoding, DecodesBase64) {
  EXPECT_EQ(decode(TextEncoding::kBase64, ""), "");
  EXPECT_EQ(decode(TextEncoding::kBase64, "Zg=="), "f");
  EXPECT_EQ(decode(TextEncoding::kBase64, "Zm8="), "fo");
  EXPECT_EQ(decode(TextEncoding::kBase64, "Zm9v"), "foo");
  EXPECT_EQ(decode(TextEncoding::kBase64, "Zm9vYg=="), "foob");
  EXPECT_EQ(decode(TextEncoding::kBase64, "+/+/AA=="), "\xFB\xFF\xBF\x00"sv);
}

TEST(TextEncoding, RefusesWhatIsNotBase64) {
  const auto bad_at = [](size_t byte, const std::string& character) {
    return "words.tsv, line 3: value is not base64 at byte " + std::to_string(byte) + " (\"" +
           character + "\"); expected characters A-Z, a-z, 0-9, + and /, with = only at the end";
  };
  EXPECT_EQ(error(TextEncoding::kBase64, "Zm-v"), bad_at(3, "-")) << "the URL alphabet";
  EXPECT_EQ(error(TextEncoding::kBase64, "Zm9v Zm9v"), bad_at(5, " "));
  EXPECT_EQ(error(TextEncoding::kBase64, "Zm9v\n"), bad_at(5, "\\x0a"));
  EXPECT_EQ(error(TextEncoding::kBase64, "\0AAA"sv), bad_at(1, "\\x00"));
  EXPECT_EQ(error(TextEncoding::kBase64, "Z==="), bad_at(2, "="));
  EXPECT_EQ(error(TextEncoding::kBase64, "Zg==Zg=="), bad_at(3, "="));
  const auto size = [](size_t characters) {
    return "words.tsv, line 3: value has " + std::to_string(characters) +
           " base64 characters; expected a multiple of 4, padded with =";
  };
  EXPECT_EQ(error(TextEncoding::kBase64, "Zg"), size(2));
  EXPECT_EQ(error(TextEncoding::kBase64, "Zg="), size(3));
  EXPECT_EQ(error(TextEncoding::kBase64, "Zm9v="), size(5));
  EXPECT_EQ(error(TextEncoding::kBase64, "="), size(1));
  const auto unused = [](size_t byte, const std::string& character) {
    return "words.tsv, line 3: value has unused bits that are not zero in its last base64 "
           "character at byte " +
           std::to_string(byte) + " (\"" + character + "\"); expected the canonical encoding";
  };
  EXPECT_EQ(error(TextEncoding::kBase64, "Zh=="), unused(2, "h"));
  EXPECT_EQ(error(TextEncoding::kBase64, "Zm9="), unused(3, "9"));
  EXPECT_EQ(error(TextEncoding::kBase64, "===="), bad_at(1, "="));
}

// The decoded size counts, whatever the text looks like.
TEST(TextEncoding, LimitsTheDecodedSize) {
  const auto error_at = [](TextEncoding encoding, const std::string& text) {
    FieldDecoder decoder("key", encoding, 4);
    return error_of([&] { decoder.decode(text, kPlace); });
  };
  const std::string five = "words.tsv, line 3: key of 5 bytes; expected at most 4";
  EXPECT_EQ(error_at(TextEncoding::kUtf8, "abcd"), "");
  EXPECT_EQ(error_at(TextEncoding::kUtf8, "abcde"), five);
  EXPECT_EQ(error_at(TextEncoding::kHex, "00112233"), "");
  EXPECT_EQ(error_at(TextEncoding::kHex, "0011223344"), five);
  EXPECT_EQ(error_at(TextEncoding::kBase64, "AAAAAA=="), "");
  EXPECT_EQ(error_at(TextEncoding::kBase64, "AAAAAAA="), five);
  EXPECT_EQ(error_at(TextEncoding::kBase64, "AAAAAAAA"),
            "words.tsv, line 3: key of 6 bytes; expected at most 4");
  const FieldDecoder decoder("key", TextEncoding::kHex, 4);
  EXPECT_EQ(decoder.accept("zzzz", kPlace), "zzzz");
  EXPECT_EQ(error_of([&] { decoder.accept("zzzzz", kPlace); }), five);
}

TEST(InputError, NamesThePlaceOnOneLine) {
  EXPECT_EQ(error_of([] {
              fail_input(InputPlace{"words.tsv", "line", 17}, "wrong; right");
            }),
            "words.tsv, line 17: wrong; right");
  EXPECT_EQ(error_of([] { fail_input("a\nb.tsv", "wrong; right"); }), "a\\x0ab.tsv: wrong; right");
  const std::string long_name(500, 'n');
  EXPECT_EQ(error_of([&] { fail_input(long_name, "wrong"); }), long_name + ": wrong");
}

}  // namespace
}  // namespace blindfuse
