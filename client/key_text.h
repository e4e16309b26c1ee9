// Keys and values as text, as people type them and as JSON can hold them.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace blindfuse {

enum class KeyEncoding { kUtf8, kHex, kBase64 };

// The encodings by the names that --key-encoding takes.
const std::map<std::string, KeyEncoding>& key_encodings();

// The bytes that a key's text encodes. Throws InputError if the text is not valid.
std::string decode_key(std::string_view text, KeyEncoding encoding);

// Well-formed UTF-8 (RFC 3629).
bool is_utf8(std::string_view text);

}  // namespace blindfuse
