// The clients that may ask: keys that they send as `Authorization: Bearer KEY`. A key says who
// asks, not what for.
//
// The file has a line for each key, its name and its hash: `NAME sha256:HEX`. Lines that are empty
// or begin with # say nothing. Keys are random and long, so that a plain hash keeps them.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/protocol/sha256.h"
#include "src/system/random.h"

namespace blindfuse {

class ApiKeys {
 public:
  // Throws InputError, naming the line, when the file cannot be read, a line is none of these, or
  // there is no key.
  explicit ApiKeys(std::filesystem::path file);

  // Reads the file again; without any key left, no client may ask. Throws InputError; the keys stay
  // as they were then. Any thread.
  void reload();

  // The name of the key in an Authorization header; nothing when it is none of these keys. Takes
  // the same time whichever key it is, and however much of one is right.
  std::optional<std::string> find(std::string_view authorization) const;

  size_t count() const;

 private:
  struct Entry {
    std::string name;
    Sha256Digest hash;
  };

  static std::vector<Entry> read(const std::filesystem::path& file);

  const std::filesystem::path file_;
  mutable std::mutex mutex_;
  std::shared_ptr<const std::vector<Entry>> entries_;
};

// The names of the keys in the text of such a file, in the order of its lines. InputError, naming
// the line, when a line is none of these.
std::vector<std::string> api_key_names(std::string_view text, const std::filesystem::path& file);

// The text without the lines of the keys of this name; everything else stays as it is.
std::string without_api_keys(std::string_view text, std::string_view name);

// A new key of 256 random bits, and its line for the file. A name has letters, digits, '.', '_' and
// '-', up to 64 of them; InputError otherwise.
std::string make_api_key(const RandomSource& random);
std::string api_key_line(std::string_view name, std::string_view key);

}  // namespace blindfuse
