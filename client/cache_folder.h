// The folder in which clients keep the hints of one database, and the locks with which they share
// it.
#pragma once

#include <blindfuse/progress.h>

#include <filesystem>
#include <functional>
#include <string_view>

#include "src/system/file.h"

namespace blindfuse {

// $XDG_CACHE_HOME/blindfuse or ~/.cache/blindfuse. Throws InputError if neither variable is set.
std::filesystem::path default_cache_folder();

// A folder under `cache` with a name made from the server's address.
std::filesystem::path database_folder(const std::filesystem::path& cache, std::string_view address);

// Creates a folder there, and its missing parents. Throws InputError if that fails.
void make_cache_folder(const std::filesystem::path& folder);

// A file system without locks, such as some of networks, has no locks to wait for: the functions
// below then go on without.

// Waits for the exclusive lock on a file, and reports to `progress`. Closing the descriptor
// releases the lock.
FileDescriptor wait_for_lock(const std::filesystem::path& path, const ProgressCallback& progress);

// Locks without reports, for a lock that is held only while a file is written. Throws InputError if
// the file cannot be made, and ResourceError if it cannot be locked.
FileDescriptor lock_briefly(const std::filesystem::path& path);

// Every process that reads a folder's hints holds this lock, so that no process removes any while
// they are in use. If a hint were gone, a client would have to ask for it after its query, and so
// reveal the shard to the server.
class UseLock {
 public:
  // Throws InputError if the file cannot be made, ResourceError if it cannot be locked.
  explicit UseLock(std::filesystem::path path);

  // Runs `work` while no other process holds the lock. Returns false, without running it, if
  // another process does, or if the file system has no locks.
  bool run_alone(const std::function<void()>& work);

 private:
  std::filesystem::path path_;
  FileDescriptor file_;
};

}  // namespace blindfuse
