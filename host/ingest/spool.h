// The input's pairs, hashed and sorted into partitions on disk, so that memory holds only a part of
// them at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/protocol/key_hash.h"
#include "src/system/file.h"

namespace blindfuse {

// The set of keys that have come, by their hashes. Different hashes are numbered 0, 1, 2, ... in
// the order in which they came. There may be fewer than 2^32. The set takes 40 to 80 bytes a hash,
// however often each comes.
class KeyHashSet {
 public:
  KeyHashSet();

  struct Place {
    uint32_t number;  // of this hash
    bool is_new;      // it was not there before
  };
  Place insert(const KeyHash& hash);

  uint32_t size() const { return static_cast<uint32_t>(hashes_.size()); }

  // Removes all hashes, and keeps the memory.
  void clear();

 private:
  size_t home_of(const KeyHash& hash) const;
  void grow();

  std::vector<KeyHash> hashes_;
  std::vector<uint32_t> slots_;  // open addressing, at most half full: a number, or kFree
};

// The treatment of several pairs with one key: they are an error, or one of them is kept. kNone:
// there are none, and none are looked for.
enum class DuplicatePolicy { kError, kFirst, kLast, kNone };

// A pair of the input. Its origin is kept for messages about duplicates.
struct SpoolEntry {
  KeyHash hash;
  uint64_t place = 0;   // in its source, as the source counts
  uint32_t source = 0;  // number of the source
  std::string_view value;
};

// Entries of one or more partitions, with the bytes that their values point into.
class SpoolPart {
 public:
  std::vector<SpoolEntry> entries;

 private:
  friend class Spool;
  void add(const SpoolEntry& entry);

  std::vector<std::unique_ptr<char[]>> blocks_;
  char* free_ = nullptr;  // in the last block
  size_t free_bytes_ = 0;
};

// Partition p of kPartitions holds the entries whose shard_hash has p as its top bits. A shard is
// monotone in shard_hash, so the entries of neighbouring shards lie in neighbouring partitions, for
// any number of shards.
//
// The spool is one file, written in blocks. With kFirst and kLast, a block holds a key once. With
// kError nothing is dropped, so that a reader of the entries finds each duplicate.
class Spool {
 public:
  static constexpr uint32_t kPartitions = 1024;
  static constexpr size_t kKeyStartBytes = 64;

  // `file` is empty, and open for reading and writing. A file without a name is gone when the
  // process ends in any way. `folder` is its place, for messages.
  Spool(FileDescriptor file, const std::filesystem::path& folder, DuplicatePolicy policy);

  // Appends a pair. One thread at a time. With kError, the first kKeyStartBytes bytes of `key` are
  // kept for messages. Throws ResourceError if the disk is full.
  void append(const SpoolEntry& entry, std::string_view key = {});
  // Writes the entries that are still in memory. append() may not be called after it.
  void seal();

  // True if append(), with kError, found a key twice within a block. Then there is no need to read
  // on. Duplicates that lie farther apart are not found here.
  bool has_duplicate() const { return has_duplicate_; }

  // The number of calls of append().
  uint64_t appended_count() const { return appended_count_; }

  // Any thread may call the functions below, after seal(). Memory: a block, and with kFirst and
  // kLast a KeyHashSet of the partition's keys.

  // Calls visitor(entry, start of the key) for the entries of a partition until it returns false.
  // The order is that of append(), and with kLast the opposite one, so that the first visit of a
  // key is that of the entry that counts. The views are valid during the call.
  using Visitor = std::function<bool(const SpoolEntry&, std::string_view)>;
  void visit(uint32_t partition, const Visitor& visitor) const;

  // Calls visitor(entry) for the entries that count: with kFirst and kLast one for each key.
  void visit_kept(uint32_t partition, const std::function<void(const SpoolEntry&)>& visitor) const;

  // The entries of partitions first .. last that count, in no particular order.
  SpoolPart load(uint32_t first, uint32_t last) const;

 private:
  struct Extent {
    uint64_t offset;
    uint64_t bytes;
  };
  struct Partition {
    std::vector<char> buffer;
    std::vector<Extent> extents;
    uint64_t appended = 0;
  };

  bool keeps_one() const {
    return policy_ == DuplicatePolicy::kFirst || policy_ == DuplicatePolicy::kLast;
  }
  void sift(Partition& partition);
  void flush(Partition& partition);

  std::filesystem::path folder_;
  DuplicatePolicy policy_;
  FileDescriptor file_;
  uint64_t file_bytes_ = 0;
  uint64_t appended_count_ = 0;
  bool has_duplicate_ = false;
  std::vector<Partition> partitions_;
  // For sift(): the keys of a buffer, the number of each entry's key, and the entry of each key.
  KeyHashSet keys_;
  std::vector<uint32_t> key_of_entry_;
  std::vector<uint32_t> entry_of_key_;
};

}  // namespace blindfuse
