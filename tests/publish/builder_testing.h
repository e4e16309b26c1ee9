// What the tests of the build share: pairs from memory, folders that go away, and a look-up that
// needs no cryptography.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "host/database/loaded_database.h"
#include "host/publish/database_builder.h"
#include "src/base/hex.h"
#include "src/protocol/sha256.h"
#include "tests/plain_engine.h"
#include "tests/support.h"

namespace blindfuse::builder_testing {

using Pairs = std::vector<std::pair<std::string, std::string>>;

class MemorySource final : public KeyValueSource {
 public:
  explicit MemorySource(Pairs pairs, std::string name = "memory")
      : pairs_(std::move(pairs)), name_(std::move(name)) {}

  bool next(KeyValuePair& pair) override {
    if (next_ == pairs_.size()) return false;
    pair.key = pairs_[next_].first;
    pair.value = pairs_[next_].second;
    pair.place = ++next_;
    return true;
  }
  const std::string& name() const override { return name_; }
  std::string_view place_unit() const override { return "line"; }
  uint64_t bytes_read() const override { return next_; }
  std::optional<uint64_t> bytes_total() const override { return pairs_.size(); }

 private:
  const Pairs pairs_;
  const std::string name_;
  size_t next_ = 0;
};

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "blindfuse-test-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::filesystem::path operator/(const char* name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Two databases built with it have the same salt and seed.
inline void fixed_random(std::span<uint8_t> bytes) {
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(17 * i + 3);
}

inline BuildReport build(const Pairs& pairs, const std::filesystem::path& root,
                         const BuildOptions& options = {}) {
  std::vector<std::unique_ptr<KeyValueSource>> sources;
  sources.push_back(std::make_unique<MemorySource>(pairs));
  return build_database(sources, root, options);
}

inline Pairs numbered_pairs(size_t count, const std::string& value = "v") {
  Pairs pairs;
  for (size_t i = 0; i < count; ++i) pairs.emplace_back("key " + std::to_string(i), value);
  return pairs;
}

inline LoadedDatabase load(const std::filesystem::path& root) {
  return load_database(root, support::kPlainEngines);
}

// What a build, or loading, is refused with; empty when it is not.
inline std::string build_refusal(const Pairs& pairs, const std::filesystem::path& root,
                                 const BuildOptions& options = {}) {
  return support::input_error_of([&] { build(pairs, root, options); });
}
inline std::string error_of_loading(const std::filesystem::path& root,
                                    const LoadedDatabase* previous = nullptr) {
  return support::input_error_of([&] { load_database(root, support::kPlainEngines, previous); });
}

// The value of a key in this shard, straight from the definition: its rows add up to its record.
inline std::optional<std::string> look_up_in(const LoadedDatabase& database, uint32_t shard,
                                             const KeyHash& hash) {
  const Layout& layout = database.manifest.layout;
  const auto rows =
      fuse_rows(layout.fuse(), database.table.shards[shard].filter_seed, hash.slot_hash);
  const auto& matrix = support::PlainEngine::in(database);
  std::vector<uint8_t> record(layout.record_bytes());
  for (uint32_t c = 0; c < record.size(); ++c) {
    const uint64_t column = uint64_t{shard} * layout.record_bytes() + c;
    for (uint32_t i = 0; i < layout.arity; ++i) {
      record[c] =
          static_cast<uint8_t>(record[c] + static_cast<uint8_t>(matrix.at(rows[i], column)));
    }
  }
  return decode_record(layout.record, hash.digest, record);
}

// The value of a key.
inline std::optional<std::string> look_up(const LoadedDatabase& database, const std::string& key) {
  const KeyHash hash = key_hash(database.manifest.salt, key);
  return look_up_in(database, shard_of(hash.shard_hash, database.manifest.layout.shard_count),
                    hash);
}

// Value i of an index database.
inline std::optional<std::string> look_up(const LoadedDatabase& database, uint64_t i) {
  const Layout& layout = database.manifest.layout;
  const IndexPlace place = index_place(i, PublicDivisor(layout.shard_count));
  const auto& matrix = support::PlainEngine::in(database);
  std::vector<uint8_t> record(layout.record_bytes());
  for (uint32_t c = 0; c < record.size(); ++c) {
    const uint64_t column = uint64_t{place.shard} * layout.record_bytes() + c;
    record[c] = static_cast<uint8_t>(matrix.at(place.row, column));
  }
  return decode_record(layout.record, {}, record);
}

inline std::string read_whole(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

inline std::string hash_of(const std::string& content) {
  return encode_hex(
      sha256(std::span(reinterpret_cast<const uint8_t*>(content.data()), content.size())));
}

// Every file below a folder with the hash of its content.
inline std::map<std::string, std::string> snapshot(const std::filesystem::path& root) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (!entry.is_regular_file()) continue;
    files[std::filesystem::relative(entry.path(), root).string()] =
        hash_of(read_whole(entry.path()));
  }
  return files;
}

}  // namespace blindfuse::builder_testing
