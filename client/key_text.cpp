#include "client/key_text.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "src/base/base64.h"
#include "src/base/errors.h"
#include "src/base/hex.h"

namespace blindfuse {

const std::map<std::string, KeyEncoding>& key_encodings() {
  static const std::map<std::string, KeyEncoding> names = {
      {"utf8", KeyEncoding::kUtf8}, {"hex", KeyEncoding::kHex}, {"base64", KeyEncoding::kBase64}};
  return names;
}

std::string decode_key(std::string_view text, KeyEncoding encoding) {
  if (encoding == KeyEncoding::kUtf8) {
    if (is_utf8(text)) return std::string(text);
    throw InputError("a key is not UTF-8; give its bytes with --key-encoding hex");
  }
  const bool hex = encoding == KeyEncoding::kHex;
  std::optional<std::string> bytes = hex ? decode_hex(text) : decode_base64(text);
  if (bytes) return std::move(*bytes);
  throw InputError("the key '" + std::string(is_utf8(text) ? text : "...") + "' is not " +
                   (hex ? "hex: pairs of the digits 0 to 9 and a to f"
                        : "base64: four characters for every three bytes, with padding"));
}

bool is_utf8(std::string_view text) {
  // The writer of JSON refuses what is not UTF-8, and so is the judge of what it can be given.
  try {
    nlohmann::json(text).dump();
    return true;
  } catch (const nlohmann::json::type_error&) {
    return false;
  }
}

}  // namespace blindfuse
