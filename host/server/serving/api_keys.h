// The keys that clients send as `Authorization: Bearer KEY`. A server with keys admits only clients
// that send one of them. A key identifies the client, and says nothing about its queries.
//
// The file has a line for each key, with its name and its hash: `NAME sha256:HEX`. After a further
// space comes a note for people: when the key was made, and how it begins. Lines that are empty or
// begin with # are ignored. Keys are random and long, so a plain hash protects them.
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
  // Throws InputError if the file cannot be read, if a line has another form (the message names
  // it), or if there is no key.
  explicit ApiKeys(std::filesystem::path file);

  // Reads the file again. If it has no key left, no client may ask. Throws InputError; the keys
  // then stay as they were. Any thread.
  void reload();

  // The name of the key in an Authorization header. Nothing if it is none of these keys. Takes the
  // same time for every key, and for any part of a key that is right.
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

struct ListedApiKey {
  std::string name;
  std::string note;  // empty in a line of version 0.3 or earlier
};

// The keys in the text of such a file, in the order of its lines. Throws InputError, which names
// the line, if a line has another form.
std::vector<ListedApiKey> list_api_keys(std::string_view text, const std::filesystem::path& file);

// The text without the lines of the keys of this name. Everything else stays as it is.
std::string without_api_keys(std::string_view text, std::string_view name);

// A new key of 256 random bits, and its line for the file. A name has up to 64 letters, digits,
// '.', '_' and '-'. Throws InputError for any other name.
std::string make_api_key(const RandomSource& random);
std::string api_key_line(std::string_view name, std::string_view key);

}  // namespace blindfuse
