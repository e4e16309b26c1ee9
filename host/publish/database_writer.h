// Writes the files of a database directory. Every file goes into the journal before it is made, and
// only a build's own files are replaced.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "host/database/build_journal.h"
#include "host/database/directory.h"
#include "src/protocol/sha256.h"
#include "src/system/open_folder.h"

namespace blindfuse {

class DatabaseWriter;

// A file that is being written in one of the folders. commit() makes it appear there as a whole,
// under the hash of its content. Without commit() it does not appear.
class NewFile {
 public:
  ~NewFile();
  NewFile(NewFile&& other) noexcept;
  NewFile& operator=(NewFile&&) = delete;

  void write(std::span<const uint8_t> bytes);
  void write(std::string_view bytes);

  // Makes the written bytes durable. If this build is cut short, the next build may give the same
  // name again. A loss of power must not destroy the file's content then: the file would be in that
  // build's way.
  void sync();

  // Gives the file its name, without syncing it. `content` is the hash of all written bytes. An
  // intact file of that name stays, and the new one is dropped: replacing a file makes some file
  // systems write the new one out at once, which costs milliseconds each. A file of that name that
  // is not intact is replaced if it is a database's. Otherwise throws InputError.
  void commit(const Sha256Digest& content);

 private:
  friend class DatabaseWriter;
  NewFile(DatabaseWriter& owner, const DatabaseFolder& folder, const OpenFolder& open);

  DatabaseWriter* owner_;  // null when there is nothing to drop
  const DatabaseFolder* folder_;
  const OpenFolder* open_;
  std::string temporary_;
  BufferedWriter writer_;
  uint64_t bytes_ = 0;
};

class DatabaseWriter {
 public:
  // `published` are the names of the files of epochs that were published here.
  DatabaseWriter(const OpenFolder& root, BuildJournal& journal,
                 const std::set<std::string>& published)
      : root_(root), journal_(journal), published_(published) {}

  // Called before the first file in the folder. Throws InputError if something else has its name.
  void make_folder(const DatabaseFolder& folder);

  // Any thread. ResourceError.
  NewFile create(const DatabaseFolder& folder);

  // Makes a file without a name, which is gone when it is closed. Throws ResourceError.
  FileDescriptor create_unnamed();

  // Writes a file in the directory itself, durably and atomically. Throws ResourceError.
  void replace(const std::string& name, std::string_view text);

 private:
  friend class NewFile;

  // A temporary file; an empty folder is the directory itself.
  FileDescriptor create_pending(const OpenFolder& folder, const std::string& entry_name);
  bool is_ours(const std::string& entry_name, const EntryStatus& status) const;

  const OpenFolder& root_;
  BuildJournal& journal_;
  const std::set<std::string>& published_;
  std::map<std::string, OpenFolder> folders_;
};

}  // namespace blindfuse
