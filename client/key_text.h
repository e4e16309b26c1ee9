// Keys and values as text: what a person types, and what JSON can hold.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace blindfuse {

enum class KeyEncoding { kUtf8, kHex, kBase64 };

// The encodings by the names that --key-encoding takes.
const std::map<std::string, KeyEncoding>& key_encodings();

// The bytes that a key stands for. Throws InputError when it stands for none.
std::string decode_key(std::string_view text, KeyEncoding encoding);

// Well-formed UTF-8 (RFC 3629).
bool is_utf8(std::string_view text);

}  // namespace blindfuse
