// Reads columns of a whole matrix from the shards' files, for one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>

#include "host/publish/pack_batches.h"
#include "src/system/file.h"

namespace blindfuse {

class ColumnReader {
 public:
  explicit ColumnReader(const PackSource& source) : source_(source) {}

  // Reads a column of R bytes. Throws InputError if a shard's file has changed.
  void read(uint64_t column, std::span<uint8_t> bytes) {
    const auto shard = static_cast<uint32_t>(column / source_.layout.record_bytes());
    if (shard_ != shard) {
      path_ =
          source_.directory.shards() / DatabaseDirectory::matrix_name(source_.shards[shard].matrix);
      file_ = open_for_reading(path_);
      shard_ = shard;
    }
    read_exactly(file_, column % source_.layout.record_bytes() * bytes.size(), bytes, path_);
  }

 private:
  const PackSource& source_;
  std::optional<uint32_t> shard_;
  std::filesystem::path path_;
  FileDescriptor file_;
};

}  // namespace blindfuse
