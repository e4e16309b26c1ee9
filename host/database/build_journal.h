// What builds have made in a database directory, written down before it is made: only what is named
// here, or by an epoch that was published here, may a build delete.
//
// A text file in the directory while a build runs, and after one that was killed:
//
//   blindfuse build journal 1 IDENTITY   of the directory: a copy of it has no journal
//   folder shards                        a folder that was not there
//   pending shards/.pending-RANDOM       a temporary file, of a name that no other has
//   file shards/SHA256.matrix I T B      a file of that name, if it is that of this FileIdentity
//
// Lines of any other form count for nothing, as does a last one that was cut short. A process that
// is killed loses no line; a machine that loses power may lose the last ones, and what they named
// is then left alone.
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

  // Reads what is there. InputError when a file of its name is not a journal of this directory.
  // `root` must outlive it.
  explicit BuildJournal(const OpenFolder& root);

  // Each before the thing itself is made; names are relative to the directory. Any thread.
  // ResourceError.
  void add_folder(const std::string& name);
  void add_pending(const std::string& name);
  void add_file(const std::string& name, const FileIdentity& identity);

  // A temporary file that is gone, or has got another name: no line, since its name is not used
  // again. Any thread.
  void forget_pending(const std::string& name);

  bool names_folder(const std::string& name) const;
  bool names_pending(const std::string& name) const;
  bool names_file(const std::string& name, const FileIdentity& identity) const;

  // Whether an earlier build has written it down.
  bool is_inherited(const std::string& name, const FileIdentity& identity) const;

  // One thread at a time.
  const std::set<std::string>& folders() const { return folders_; }
  const std::set<std::string>& pending() const { return pending_; }
  const std::map<std::string, std::vector<FileIdentity>>& files() const { return files_; }

  // Deletes the journal, once nothing is left of what it names but the current epoch.
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
