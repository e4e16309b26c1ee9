// Tells whoever started a server that it accepts requests, and where.
#pragma once

#include <filesystem>
#include <string>

namespace blindfuse {

// A file with the server's URL and a newline, there from construction to destruction, never in
// part.
class ReadyFile {
 public:
  // Throws InputError or ResourceError when it cannot be written.
  ReadyFile(std::filesystem::path path, const std::string& url);
  ~ReadyFile() { remove(path_); }
  ReadyFile(const ReadyFile&) = delete;
  ReadyFile& operator=(const ReadyFile&) = delete;

  // Removes one, if it is there and can be removed: for a process that ends without destructors.
  static void remove(const std::filesystem::path& path) noexcept;
  // Ends the process with kExitFailed, and without destructors, whatever hangs: the file goes if
  // that takes no longer than a second.
  [[noreturn]] static void end_process(const std::filesystem::path& path);

 private:
  const std::filesystem::path path_;
};

}  // namespace blindfuse
