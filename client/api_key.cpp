#include "client/api_key.h"

#include <algorithm>

#include "src/base/errors.h"
#include "src/system/file.h"

namespace blindfuse {

bool is_api_key(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    constexpr std::string_view kMarks = "-._~+/=";
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kMarks.find(c) != std::string_view::npos;
  });
}

std::string read_api_key(const std::filesystem::path& file) {
  constexpr uint64_t kFileBytesMax = 4096;
  std::string key = read_text_file(file, kFileBytesMax);
  key.resize(std::min(key.find_first_of("\r\n"), key.size()));
  if (!is_api_key(key)) {
    throw InputError(file.string() + ": its first line is not an API key");
  }
  return key;
}

}  // namespace blindfuse
