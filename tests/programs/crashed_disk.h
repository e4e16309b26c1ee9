// What may be left of a folder when the power fails while a program writes to it.
//
// What was synced is there. Of the rest any part may be: blocks of a file's data, one by one, with
// zeros where a file grew and its data did not arrive; and of the changes to a folder's entries,
// as they came, or any of them. POSIX promises no more; this is the model of ALICE (Pillai et al.,
// OSDI 2014) without what file systems add to it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/programs/disk_record.h"

namespace blindfuse::program_testing {

class CrashedDisk {
 public:
  // Of the changes to a folder's entries that were not synced.
  enum class Entries {
    kFirstOnes,  // this many of the first, in each folder
    kAny,
  };

  // Takes in what the folder holds, all of it synced, before the program runs.
  explicit CrashedDisk(const std::filesystem::path& folder);
  ~CrashedDisk();
  CrashedDisk(const CrashedDisk&) = delete;
  CrashedDisk& operator=(const CrashedDisk&) = delete;

  // Takes in what the program did, as disk_journal.cpp noted it.
  void read_journal(const std::filesystem::path& journal);
  size_t record_count() const { return records_.size(); }

  // Goes on to the moment when the first `count` records are done; never back.
  void advance(size_t count);
  // Makes `folder`, which there must not be, as it may be after a crash at this moment.
  void write_state(Entries entries, std::mt19937& random,
                   const std::filesystem::path& folder) const;

 private:
  struct Record {
    DiskRecord record;
    std::string name;
    std::string other_name;
    std::string data;
  };
  struct Node;  // a file or a folder, whatever its names
  struct Choice;
  using SharedNode = std::shared_ptr<Node>;

  SharedNode scan(const std::filesystem::path& path);
  void play(const Record& record);
  Node* find(uint64_t inode) const;
  SharedNode entry_now(uint64_t folder, const std::string& name) const;
  void set_entry(uint64_t folder, const std::string& name, const SharedNode& node);
  static void write_folder(const Node& node, const Choice& choice,
                           const std::filesystem::path& path);

  std::vector<Record> records_;
  size_t played_ = 0;
  std::map<uint64_t, SharedNode> nodes_;  // by the inode's number, which may be given again
  std::vector<SharedNode> all_;
  SharedNode root_;
};

}  // namespace blindfuse::program_testing
