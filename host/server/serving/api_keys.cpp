#include "host/server/serving/api_keys.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <utility>

#include "src/base/errors.h"
#include "src/base/hex.h"
#include "src/base/utf8.h"
#include "src/system/file.h"

namespace blindfuse {
namespace {

constexpr uint64_t kFileBytesMax = 16 << 20;
constexpr std::string_view kPrefix = "sha256:";
constexpr size_t kNameBytesMax = 64;

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kNameBytesMax && std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '.' ||
           c == '_' || c == '-';
  });
}

Sha256Digest hash_of(std::string_view key) {
  return sha256({reinterpret_cast<const uint8_t*>(key.data()), key.size()});
}

// The key of "Bearer KEY": the scheme in any case, and one space or more after it (RFC 9110,
// section 11.4).
std::string_view bearer_key(std::string_view authorization) {
  constexpr std::string_view kScheme = "bearer ";
  if (authorization.size() < kScheme.size()) return {};
  const bool bearer = equal_ignoring_case(authorization.substr(0, kScheme.size()), kScheme);
  if (!bearer) return {};
  return authorization.substr(
      std::min(authorization.find_first_not_of(' ', kScheme.size()), authorization.size()));
}

struct NamedHash {
  std::string name;
  Sha256Digest hash{};
  std::string note;
};

// `file` is for messages.
std::vector<NamedHash> parse_keys(std::string_view text, const std::filesystem::path& file) {
  std::istringstream lines{std::string(text)};
  std::vector<NamedHash> keys;
  std::string line;
  for (uint64_t number = 1; std::getline(lines, line); ++number) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty() || line.front() == '#') continue;
    std::istringstream words(line);
    NamedHash key;
    std::string hash;
    std::getline(words, key.name, ' ');
    std::getline(words, hash, ' ');
    std::getline(words, key.note);
    const auto digest =
        decode_hex(std::string_view(hash).substr(std::min(kPrefix.size(), hash.size())));
    if (!is_name(key.name) || !hash.starts_with(kPrefix) || !digest ||
        digest->size() != key.hash.size() || line.back() == ' ') {
      // The line is not quoted: someone may have put a key there.
      throw InputError(file.string() + ", line " + std::to_string(number) +
                       ": expected NAME sha256:HEX, as `blindfuse api-key` writes it");
    }
    std::ranges::copy(*digest, key.hash.begin());
    keys.push_back(std::move(key));
  }
  return keys;
}

}  // namespace

ApiKeys::ApiKeys(std::filesystem::path file)
    : file_(std::move(file)), entries_(std::make_shared<const std::vector<Entry>>(read(file_))) {
  if (!entries_->empty()) return;
  throw InputError(file_.string() +
                   " has no keys, so no client could ask; make one with `blindfuse api-key`");
}

std::vector<ApiKeys::Entry> ApiKeys::read(const std::filesystem::path& file) {
  std::vector<Entry> entries;
  for (NamedHash& key : parse_keys(read_text_file(file, kFileBytesMax), file)) {
    entries.push_back({std::move(key.name), key.hash});
  }
  return entries;
}

std::vector<ListedApiKey> list_api_keys(std::string_view text, const std::filesystem::path& file) {
  std::vector<ListedApiKey> keys;
  for (NamedHash& key : parse_keys(text, file)) {
    keys.push_back({std::move(key.name), std::move(key.note)});
  }
  return keys;
}

std::string without_api_keys(std::string_view text, std::string_view name) {
  const std::string begin = std::string(name) + " ";
  std::string kept;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end == text.npos ? end : end + 1);
    if (!line.starts_with(begin)) kept += line;
    text.remove_prefix(line.size());
  }
  return kept;
}

void ApiKeys::reload() {
  auto entries = std::make_shared<const std::vector<Entry>>(read(file_));
  const std::lock_guard lock(mutex_);
  entries_ = std::move(entries);
}

std::optional<std::string> ApiKeys::find(std::string_view authorization) const {
  std::shared_ptr<const std::vector<Entry>> entries;
  {
    const std::lock_guard lock(mutex_);
    entries = entries_;
  }
  // Hashes are compared: where a comparison ends says nothing of the key. That of nothing may be in
  // the file, made by a script whose variable was empty; it admits no client.
  const std::string_view key = bearer_key(authorization);
  const Sha256Digest hash = hash_of(key);
  const Entry* found = nullptr;
  for (const Entry& entry : *entries) {
    if (CRYPTO_memcmp(entry.hash.data(), hash.data(), hash.size()) == 0) found = &entry;
  }
  return found == nullptr || key.empty() ? std::nullopt : std::optional(found->name);
}

size_t ApiKeys::count() const {
  const std::lock_guard lock(mutex_);
  return entries_->size();
}

std::string make_api_key(const RandomSource& random) {
  std::array<uint8_t, 32> bytes{};
  random(bytes);
  const std::string key = "bfk_" + encode_hex(bytes);
  OPENSSL_cleanse(bytes.data(), bytes.size());
  return key;
}

std::string api_key_line(std::string_view name, std::string_view key) {
  if (!is_name(name)) {
    throw InputError("a key's name has 1 to 64 letters, digits, dots, underscores and dashes");
  }
  return std::string(name) + " " + std::string(kPrefix) + encode_hex(hash_of(key));
}

}  // namespace blindfuse
