#include "host/server/ready_file.h"

#include <unistd.h>

#include <chrono>
#include <exception>
#include <system_error>
#include <utility>

#include "src/base/errors.h"
#include "src/program/program.h"
#include "src/system/file.h"
#include "src/system/threads.h"

namespace blindfuse {

ReadyFile::ReadyFile(std::filesystem::path path, const std::string& url) : path_(std::move(path)) {
  if (!path_.has_filename() || std::filesystem::is_directory(path_)) {
    throw InputError("cannot write the ready file " + path_.string() + ": it is a folder");
  }
  const std::filesystem::path folder = path_.has_parent_path() ? path_.parent_path() : ".";
  if (!std::filesystem::is_directory(folder)) {
    throw InputError("cannot write the ready file " + path_.string() + ": there is no folder " +
                     folder.string());
  }
  PendingFile file(folder);
  file.write(url + "\n");
  file.commit(path_.filename().string());
}

void ReadyFile::remove(const std::filesystem::path& path) noexcept {
  std::error_code ignored;  // the process is about to end
  std::filesystem::remove(path, ignored);
}

void ReadyFile::end_process(const std::filesystem::path& path) {
  constexpr std::chrono::seconds kPatience{1};
  try {
    WaitableThread removal([&] { remove(path); });
    (void)removal.join_within(kPatience);
    _exit(kExitFailed);  // the destructor would wait for the end of the removal
  } catch (const std::exception&) {
    _exit(kExitFailed);  // no thread can be started
  }
}

}  // namespace blindfuse
