// Which files of a folder are opened, as the system tells (inotify), in their order.
#pragma once

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace blindfuse {

class WatchedFiles {
 public:
  explicit WatchedFiles(const std::filesystem::path& folder)
      : inotify_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    // Reading is watched too: opening one file twice without an event in between would be told
    // once.
    if (inotify_ < 0 || inotify_add_watch(inotify_, folder.c_str(), IN_OPEN | IN_ACCESS) < 0) {
      throw std::runtime_error("inotify: " + std::string(std::strerror(errno)));
    }
  }
  ~WatchedFiles() { close(inotify_); }
  WatchedFiles(const WatchedFiles&) = delete;
  WatchedFiles& operator=(const WatchedFiles&) = delete;

  // The names of those that were opened since the last call.
  std::vector<std::string> take_opened() {
    std::vector<std::string> names;
    std::array<char, 65'536> events;
    for (;;) {
      const ssize_t size = read(inotify_, events.data(), events.size());
      if (size < 0 && errno == EAGAIN) return names;
      if (size <= 0) throw std::runtime_error("inotify: " + std::string(std::strerror(errno)));
      for (size_t at = 0; at < static_cast<size_t>(size);) {
        inotify_event event;
        std::memcpy(&event, events.data() + at, sizeof event);
        if ((event.mask & IN_Q_OVERFLOW) != 0) throw std::runtime_error("inotify: too many events");
        const bool is_file_opened = (event.mask & IN_OPEN) != 0 && event.len > 0;
        if (is_file_opened) names.emplace_back(events.data() + at + sizeof event);
        at += sizeof event + event.len;
      }
    }
  }

 private:
  int inotify_;
};

}  // namespace blindfuse
