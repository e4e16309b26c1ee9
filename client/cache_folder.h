// Where a client keeps the hints of one database, and how clients share that folder.
#pragma once

#include <blindfuse/progress.h>

#include <filesystem>
#include <functional>
#include <string_view>

#include "src/system/file.h"

namespace blindfuse {

// $XDG_CACHE_HOME/blindfuse or ~/.cache/blindfuse. Throws InputError when neither variable is set.
std::filesystem::path default_cache_folder();

// A folder under `cache` with a name made from the server's address.
std::filesystem::path database_folder(const std::filesystem::path& cache, std::string_view address);

// Waits for the exclusive lock on a file, telling `progress`; it is free again when the descriptor
// is closed.
FileDescriptor wait_for_lock(const std::filesystem::path& path, const ProgressCallback& progress);

// The same, without telling, for a lock that is never held for longer than it takes to write a
// file.
// InputError when the file cannot be made, ResourceError when it cannot be locked.
FileDescriptor lock_briefly(const std::filesystem::path& path);

// Held by everyone who reads a folder's hints, so that no process removes any while they are in
// use: with a hint gone, a client would have to ask for it after its query, and so tell the server
// the shard.
class UseLock {
 public:
  // Throws InputError when the file cannot be made, ResourceError when it cannot be locked.
  explicit UseLock(std::filesystem::path path);

  // Runs `work` while no other process holds the lock. False, without running it, when somebody
  // does.
  bool run_alone(const std::function<void()>& work);

 private:
  std::filesystem::path path_;
  FileDescriptor file_;
};

}  // namespace blindfuse
