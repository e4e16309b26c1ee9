// Tells the program that started a server that the server accepts requests, and at which URL.
#pragma once

#include <filesystem>
#include <string>

namespace blindfuse {

// A file with the server's URL and a newline. It is there from construction to destruction, and is
// never seen in part.
class ReadyFile {
 public:
  // Throws InputError or ResourceError if it cannot be written.
  ReadyFile(std::filesystem::path path, const std::string& url);
  ~ReadyFile() { remove(path_); }
  ReadyFile(const ReadyFile&) = delete;
  ReadyFile& operator=(const ReadyFile&) = delete;

  // Removes a ready file, if there is one that can be removed: for a process that ends without
  // destructors.
  static void remove(const std::filesystem::path& path) noexcept;
  // Ends the process with kExitFailed, without destructors, even if other threads hang. Removes the
  // file if that takes no longer than a second.
  [[noreturn]] static void end_process(const std::filesystem::path& path);

 private:
  const std::filesystem::path path_;
};

}  // namespace blindfuse
