// One line of what a program did to the disk, as disk_journal.cpp writes it: this, two names, data.
#pragma once

#include <cstdint>

namespace blindfuse::program_testing {

struct DiskRecord {
  enum Kind : uint32_t {
    kCreate,      // a file: first is its folder's inode, second its own; its name
    kMakeFolder,  // the same of a folder
    kRename,      // from the folder `first` to `second`; both names
    kRemove,      // from the folder `first`; its name
    kTruncate,    // the file `first` to `second` bytes
    kWrite,       // to the file `first` at `second`; data
    kSync,        // the file or folder `first`
    kSyncAll,     // the whole file system
  };

  Kind kind;
  uint32_t name_bytes = 0;
  uint32_t other_name_bytes = 0;
  uint32_t unused = 0;
  uint64_t first = 0;
  uint64_t second = 0;
  uint64_t data_bytes = 0;
};

}  // namespace blindfuse::program_testing
