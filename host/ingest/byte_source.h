// Sources of a text's bytes: a file, standard input, a pipe, or memory. Compressed files are
// recognized, and refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace blindfuse {

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Reads 1 to into.size() bytes (`into` is not empty) and returns their number. Returns 0 only at
  // the end. Throws InputError with the system's message if reading fails.
  virtual size_t read(std::span<char> into) = 0;

  virtual const std::string& name() const = 0;

  // The number of bytes from the first read to the end, if it is known.
  virtual std::optional<uint64_t> bytes_total() const = 0;
};

// Reads a file descriptor: of a file, a pipe, a terminal.
class FileByteSource : public ByteSource {
 public:
  enum class Ownership { kOwned, kBorrowed };  // who closes the descriptor

  // Throws InputError if the descriptor is a directory's, and closes it if it is owned.
  FileByteSource(int descriptor, Ownership ownership, std::string name);
  ~FileByteSource() override;
  FileByteSource(const FileByteSource&) = delete;
  FileByteSource& operator=(const FileByteSource&) = delete;

  size_t read(std::span<char> into) override;
  const std::string& name() const override { return name_; }
  std::optional<uint64_t> bytes_total() const override { return bytes_total_; }

 private:
  int descriptor_;
  Ownership ownership_;
  std::string name_;
  std::optional<uint64_t> bytes_total_;
};

// Reads memory that outlives it.
class MemoryByteSource : public ByteSource {
 public:
  MemoryByteSource(std::string_view bytes, std::string name);

  size_t read(std::span<char> into) override;
  const std::string& name() const override { return name_; }
  std::optional<uint64_t> bytes_total() const override { return bytes_total_; }

 private:
  std::string_view rest_;
  std::string name_;
  uint64_t bytes_total_;
};

// Throws InputError with the system's message if `path` cannot be opened or is a directory.
std::unique_ptr<ByteSource> open_file(const std::string& path);

std::unique_ptr<ByteSource> standard_input();

// This many first bytes suffice to recognize a compressed file.
inline constexpr size_t kCompressionMagicBytes = 6;

// Throws InputError if `start`, the first bytes of the input called `name`, is the start of a gzip,
// zstd, xz or zip file. The message has the command that decompresses it.
void refuse_compressed(std::string_view name, std::string_view start);

// Goes by the end of a file's name: .gz, .zst, .xz or .zip.
void refuse_compressed_name(std::string_view path);

// True if more bytes may show that it is a compressed file.
bool may_be_compressed(std::string_view start);

}  // namespace blindfuse
