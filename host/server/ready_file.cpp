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

ReadyFile::~ReadyFile() {
  std::error_code ignored;  // nobody is left to tell
  std::filesystem::remove(path_, ignored);
}

}  // namespace blindfuse
