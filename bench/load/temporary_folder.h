// A folder that is removed when the program ends, also by Ctrl-C or SIGTERM.
#pragma once

#include <filesystem>
#include <memory>

namespace blindfuse::load {

class TemporaryFolder {
 public:
  // Throws InputError when there is no place for it.
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  struct Signals;

  void remove();

  std::filesystem::path path_;
  std::unique_ptr<Signals> signals_;
};

}  // namespace blindfuse::load
