// Files: whole reads, durable writes, and locks. Errors are InputError (a path is wrong) or
// ResourceError (the disk fails), and name the path and what the system said.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace blindfuse {

// An open file descriptor, closed with its owner.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor();
  FileDescriptor(FileDescriptor&& other) noexcept;
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// A name for a temporary file that no other has: kTemporaryPrefix, and 24 hex digits of
// randomness from the system. ResourceError.
std::string temporary_name();
bool is_temporary_name(std::string_view name);

// Creates a file of such a name in `folder`, with the permissions that the umask leaves, and sets
// `path` to it. ResourceError.
FileDescriptor create_temporary_file(const std::filesystem::path& folder,
                                     std::filesystem::path& path, unsigned permissions = 0666);

// True for an errno that may pass in a moment, whatever the path is: a lack of descriptors or
// memory, a disk or a network file system that does not answer.
bool is_passing_error(int error);

// True for an errno that says that the file system lacks a call: many over a network or in user
// space have neither locks nor the fsync of a folder.
bool is_unsupported(int error);

// Throws the error of a call that reads (errno): ResourceError for a passing reason, otherwise
// InputError. what: "open", "read".
[[noreturn]] void fail_to_read(const char* what, const std::filesystem::path& path);

// Reading throws as fail_to_read().

// Opens without waiting for the other end of a pipe.
FileDescriptor open_for_reading(const std::filesystem::path& path);

// InputError for anything except a regular file.
uint64_t file_size(const FileDescriptor& file, const std::filesystem::path& path);

// Reads exactly bytes.size() bytes at `offset`. InputError when the file ends before.
void read_exactly(const FileDescriptor& file, uint64_t offset, std::span<uint8_t> bytes,
                  const std::filesystem::path& path);

// The whole file, which must have at most bytes_max bytes: checked before memory is taken.
std::string read_file(const std::filesystem::path& path, uint64_t bytes_max);
std::vector<uint8_t> read_file_bytes(const std::filesystem::path& path, uint64_t bytes_max);

// Reads text that people edit, and drops a UTF-8 byte order mark at its beginning.
std::string read_text_file(const std::filesystem::path& path, uint64_t bytes_max);

// Writes a file from its beginning, buffered: small pieces cost no system call each. ResourceError.
class BufferedWriter {
 public:
  // `path` is for messages.
  BufferedWriter(FileDescriptor file, std::filesystem::path path)
      : file_(std::move(file)), path_(std::move(path)) {}

  void write(std::span<const uint8_t> bytes);
  void flush();

  const FileDescriptor& file() const { return file_; }

 private:
  FileDescriptor file_;
  std::filesystem::path path_;
  std::vector<uint8_t> buffer_;
};

// A file being written under a temporary name in the same folder; it appears under its own name,
// whole and on disk, at commit(), or not at all.
class PendingFile {
 public:
  // Creates a temporary file in `folder`.
  explicit PendingFile(const std::filesystem::path& folder);
  ~PendingFile();
  PendingFile(PendingFile&&) = default;
  PendingFile& operator=(PendingFile&&) = delete;

  void write(std::span<const uint8_t> bytes) { writer_.write(bytes); }
  void write(std::string_view bytes);

  // Syncs the file, renames it to folder/name (replacing what is there), and syncs the folder.
  void commit(const std::string& name);

 private:
  std::filesystem::path folder_;
  std::filesystem::path temporary_;
  BufferedWriter writer_;
};

inline constexpr std::string_view kTemporaryPrefix = ".pending-";

// Makes the written bytes of an open file, or the entries of an open folder, durable, as far as the
// file system can. ResourceError.
void sync_file(const FileDescriptor& file, const std::filesystem::path& path);

// Makes a folder's entries durable.
void sync_folder(const std::filesystem::path& folder);

// Makes all files of the folder's file system durable.
void sync_filesystem(const std::filesystem::path& folder);

// Creates the folder and its missing parents. InputError when that fails.
void make_folder(const std::filesystem::path& folder);

// An exclusive lock on a file (created when missing; not a symbolic link), held until destroyed;
// the system frees it when the process dies. Nothing when another process holds it, and a
// descriptor that is not open where the file system has no locks. A user who can open the file can
// lock it, so that by default only its owner and its group may.
std::optional<FileDescriptor> try_lock(const std::filesystem::path& path,
                                       unsigned permissions = 0660);

}  // namespace blindfuse
