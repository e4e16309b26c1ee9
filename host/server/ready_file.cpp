#include "host/server/ready_file.h"

#include <system_error>
#include <utility>

#include "src/base/errors.h"
#include "src/system/file.h"

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

}  // namespace blindfuse
