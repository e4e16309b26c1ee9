// The key that a server may require. It identifies the client to this server alone. The
// cryptography does not need it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace blindfuse {

// Letters, digits and -._~+/= (RFC 6750, section 2.1).
bool is_api_key(std::string_view text);

// Reads the first line of a file. Throws InputError if it is not an API key.
std::string read_api_key(const std::filesystem::path& file);

}  // namespace blindfuse
