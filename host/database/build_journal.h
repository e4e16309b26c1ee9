// The journal of builds in a database directory. A build writes a name down before it makes the
// file. It may delete only files that the journal names, or that belong to an epoch that was
// published here.
//
// A text file in the directory while a build runs, and after a build that was killed:
//
//   blindfuse build journal 1 IDENTITY   of the directory: a copy of it has no journal
//   folder shards                        a folder that was not there
//   pending shards/.pending-RANDOM       a temporary file, of a name that no other has
//   file shards/SHA256.matrix I T B      a file of that name, if it is that of this FileIdentity
//
// Lines of any other form are ignored, and so is a last line that was cut short. A process that is
// killed loses no line. A machine that loses power may lose the last lines, and no build then
// deletes the files that they named.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "src/system/open_folder.h"

namespace blindfuse {

class BuildJournal {
 public:
  static constexpr const char* kFileName = ".build-journal";

  // Reads the journal that is there. Throws InputError if a file of its name is not a journal of
  // this directory. `root` must outlive it.
  explicit BuildJournal(const OpenFolder& root);

  // Each is called before the thing itself is made. Names are relative to the directory. Any
  // thread. Throw ResourceError.
  void add_folder(const std::string& name);
  void add_pending(const std::string& name);
  void add_file(const std::string& name, const FileIdentity& identity);

  // Notes that a temporary file is gone, or has got another name. This writes no line, since the
  // name is not used again. Any thread.
  void forget_pending(const std::string& name);

  bool names_folder(const std::string& name) const;
  bool names_pending(const std::string& name) const;
  bool names_file(const std::string& name, const FileIdentity& identity) const;

  // True if an earlier build has written it down.
  bool is_inherited(const std::string& name, const FileIdentity& identity) const;

  // One thread at a time.
  const std::set<std::string>& folders() const { return folders_; }
  const std::set<std::string>& pending() const { return pending_; }
  const std::map<std::string, std::vector<FileIdentity>>& files() const { return files_; }

  // Deletes the journal. Called when only the current epoch is left of the names in it.
  void remove();

 private:
  void read();
  bool is_unfinished(std::string_view begin, uint64_t file_bytes) const;
  void take(std::string_view line);
  void append(std::string_view line);

  const OpenFolder& root_;
  const std::string header_;
  mutable std::mutex mutex_;
  FileDescriptor file_;
  bool has_header_ = false;
  bool ends_in_mid_line_ = false;
  std::set<std::string> folders_;
  std::set<std::string> pending_;
  std::map<std::string, std::vector<FileIdentity>> files_;
  std::map<std::string, std::vector<FileIdentity>> inherited_;  // those of files_ that were read
};

}  // namespace blindfuse
