#include "host/ingest/text_encoding.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "src/base/base64.h"
#include "src/base/errors.h"
#include "src/base/hex.h"
#include "src/base/utf8.h"

namespace blindfuse {

namespace {

constexpr std::string_view kHexDigits = "0123456789abcdefABCDEF";
constexpr std::string_view kBase64Digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// 'at byte 7 ("x")', with the whole character there.
std::string character_at(std::string_view text, size_t at) {
  const size_t bytes = std::max<size_t>(utf8_sequence_bytes(text.substr(at)), 1);
  return "at byte " + std::to_string(at + 1) + " (" + quoted(text.substr(at, bytes)) + ")";
}

std::string_view without_padding(std::string_view text) {
  for (int i = 0; i < 2 && text.ends_with('='); ++i) text.remove_suffix(1);
  return text;
}

}  // namespace

FieldDecoder::FieldDecoder(std::string_view noun, TextEncoding encoding, size_t max_bytes)
    : noun_(noun), encoding_(encoding), max_bytes_(max_bytes) {}

std::string_view FieldDecoder::decode(std::string_view text, const InputPlace& place) {
  std::optional<std::string> decoded;
  switch (encoding_) {
    case TextEncoding::kUtf8:
      check_size(text.size(), place);
      check_utf8(text, place);
      return text;
    case TextEncoding::kHex:
      check_size(text.size() / 2, place);
      decoded = decode_hex(text);
      if (!decoded) fail_hex(text, place);
      break;
    case TextEncoding::kBase64:
      check_size(without_padding(text).size() * 3 / 4, place);
      decoded = decode_base64(text);
      if (!decoded) fail_base64(text, place);
      break;
  }
  invariant(decoded.has_value(), "a text encoding is one of three");
  decoded_ = std::move(*decoded);
  return decoded_;
}

std::string_view FieldDecoder::accept(std::string_view bytes, const InputPlace& place) const {
  check_size(bytes.size(), place);
  return bytes;
}

void FieldDecoder::check_size(size_t bytes, const InputPlace& place) const {
  if (bytes <= max_bytes_) return;
  fail_input(place, noun_ + " of " + std::to_string(bytes) + " bytes; expected at most " +
                        std::to_string(max_bytes_));
}

void FieldDecoder::check_utf8(std::string_view text, const InputPlace& place) const {
  const size_t at = utf8_prefix_bytes(text);
  if (at == text.size()) return;
  fail_input(place, noun_ + " is not UTF-8 " + character_at(text, at) +
                        "; expected UTF-8, or bytes written as hex or base64");
}

void FieldDecoder::fail_hex(std::string_view text, const InputPlace& place) const {
  const size_t bad = text.find_first_not_of(kHexDigits);
  if (bad != std::string_view::npos) {
    fail_input(place, noun_ + " is not hex " + character_at(text, bad) +
                          "; expected digits 0-9, a-f or A-F");
  }
  fail_input(place, noun_ + " has an odd number of hex digits (" + std::to_string(text.size()) +
                        "); expected two for each byte");
}

void FieldDecoder::fail_base64(std::string_view text, const InputPlace& place) const {
  const size_t bad = without_padding(text).find_first_not_of(kBase64Digits);
  if (bad != std::string_view::npos) {
    fail_input(place, noun_ + " is not base64 " + character_at(text, bad) +
                          "; expected characters A-Z, a-z, 0-9, + and /, with = only at the end");
  }
  if (text.size() % 4 != 0) {
    fail_input(place, noun_ + " has " + std::to_string(text.size()) +
                          " base64 characters; expected a multiple of 4, padded with =");
  }
  fail_input(place, noun_ + " has unused bits that are not zero in its last base64 character " +
                        character_at(text, without_padding(text).size() - 1) +
                        "; expected the canonical encoding");
}

FieldDecoder key_decoder(TextEncoding encoding) {
  return FieldDecoder("key", encoding, kMaxKeyBytes);
}

FieldDecoder value_decoder(TextEncoding encoding) {
  return FieldDecoder("value", encoding, kMaxValueBytes);
}

}  // namespace blindfuse
