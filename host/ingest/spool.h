// The input's pairs, hashed and sorted into partitions on disk, so that memory holds only a part of
// them at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "src/key_hash.h"
#include "src/system/file.h"

namespace blindfuse {

// One pair of the input. Where it came from is kept for messages about duplicates.
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
  std::vector<std::vector<char>> bytes_;
};

// Partition p of kPartitions holds the entries whose shard_hash has p as its top bits: since a
// shard is monotone in shard_hash, the entries of neighbouring shards lie in neighbouring
// partitions, whatever their number.
//
// One file, written in blocks.
class Spool {
 public:
  static constexpr uint32_t kPartitions = 1024;

  // `file` is empty, and open for reading and writing; one without a name is gone when the process
  // ends, however it ends. `folder` is where it is, for messages.
  Spool(FileDescriptor file, const std::filesystem::path& folder);

  // One thread at a time. Throws EngineTrouble when the disk is full.
  void append(const SpoolEntry& entry);
  // Writes what is still in memory; append() may not be called after.
  void finish();

  uint64_t entry_count() const { return entry_count_; }

  // The entries of partitions first .. last, in the order of append() within each partition. Any
  // thread, after finish().
  SpoolPart load(uint32_t first, uint32_t last) const;

 private:
  struct Extent {
    uint64_t offset;
    uint64_t bytes;
  };
  struct Partition {
    std::vector<char> buffer;
    std::vector<Extent> extents;
    uint64_t entries = 0;
    uint64_t bytes = 0;
  };

  void flush(Partition& partition);

  std::filesystem::path folder_;
  FileDescriptor file_;
  uint64_t file_bytes_ = 0;
  uint64_t entry_count_ = 0;
  std::vector<Partition> partitions_;
};

}  // namespace blindfuse
