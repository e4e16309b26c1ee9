#include "src/base64.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>

#include "src/errors.h"

namespace blindfuse {
namespace {

// OpenSSL's block decoder forgives white space at the ends and any bits behind the padding, so the
// alphabet, the padding and the unused bits are checked here and the decoding itself is left to it.
constexpr uint8_t kInvalid = 0xff;

constexpr std::array<uint8_t, 256> sextets() {
  std::array<uint8_t, 256> table{};
  table.fill(kInvalid);
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t i = 0; i < kAlphabet.size(); ++i) {
    table[static_cast<uint8_t>(kAlphabet[i])] = static_cast<uint8_t>(i);
  }
  return table;
}
constexpr std::array<uint8_t, 256> kSextets = sextets();

size_t padding_of(std::string_view text) {
  if (text.ends_with("==")) return 2;
  return text.ends_with('=') ? 1 : 0;
}

bool is_canonical(std::string_view text) {
  if (text.size() % 4 != 0) return false;
  if (text.empty()) return true;
  const size_t padding = padding_of(text);
  const std::string_view digits = text.substr(0, text.size() - padding);
  for (char c : digits) {
    if (kSextets[static_cast<uint8_t>(c)] == kInvalid) return false;
  }
  const uint8_t unused_bits = padding == 2 ? 0x0f : padding == 1 ? 0x03 : 0x00;
  return (kSextets[static_cast<uint8_t>(digits.back())] & unused_bits) == 0;
}

// EVP_DecodeBlock takes an int and writes whole groups of three bytes, so the text goes through it
// in pieces and the last group through a buffer of its own.
constexpr size_t kPiece = 1 << 20;

void decode_canonical(std::string_view text, uint8_t* out, size_t out_size) {
  size_t written = 0;
  const auto* digits = reinterpret_cast<const unsigned char*>(text.data());
  const size_t whole = text.size() - 4;
  for (size_t at = 0; at < whole; at += kPiece) {
    const int length = static_cast<int>(std::min(kPiece, whole - at));
    const int got = EVP_DecodeBlock(out + written, digits + at, length);
    invariant(got == length / 4 * 3, "checked base64 decodes");
    written += static_cast<size_t>(got);
  }
  std::array<unsigned char, 3> last{};
  invariant(EVP_DecodeBlock(last.data(), digits + whole, 4) == 3, "checked base64 decodes");
  std::copy_n(last.data(), out_size - written, out + written);
}

}  // namespace

std::string encode_base64(std::span<const uint8_t> bytes) {
  // The encoder ends what it writes with a zero byte, hence one byte more than the text.
  std::string text(base64_length(bytes.size()) + 1, '\0');
  auto* out = reinterpret_cast<unsigned char*>(text.data());
  constexpr size_t kPieceBytes = kPiece / 4 * 3;
  for (size_t at = 0; at < bytes.size(); at += kPieceBytes) {
    const size_t length = std::min(kPieceBytes, bytes.size() - at);
    out += EVP_EncodeBlock(out, bytes.data() + at, static_cast<int>(length));
  }
  text.pop_back();
  return text;
}

bool decode_base64_into(std::string_view text, std::span<uint8_t> out) {
  if (!is_canonical(text)) return false;
  if (text.size() / 4 * 3 - padding_of(text) != out.size()) return false;
  if (!text.empty()) decode_canonical(text, out.data(), out.size());
  return true;
}

std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string bytes(text.size() / 4 * 3 - padding_of(text), '\0');
  if (!decode_base64_into(text, {reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()})) {
    return std::nullopt;
  }
  return bytes;
}

}  // namespace blindfuse
