#include "host/server/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
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

void notify_service_manager(std::string_view state) {
  const char* path = std::getenv("NOTIFY_SOCKET");
  if (path == nullptr || (path[0] != '/' && path[0] != '@')) return;
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  const size_t length = std::strlen(path);
  if (length >= sizeof name.sun_path) return;
  std::memcpy(name.sun_path, path, length);
  // An abstract socket's name begins with a zero byte, written as @.
  if (name.sun_path[0] == '@') name.sun_path[0] = '\0';
  const FileDescriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) return;
  (void)!sendto(socket.get(), state.data(), state.size(), MSG_NOSIGNAL,
                reinterpret_cast<const sockaddr*>(&name),
                static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length));
}

namespace {

// A whole number in the environment; 0 when the variable is unset or not a number.
uint64_t number_in_environment(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) return 0;
  uint64_t number = 0;
  const char* end = text + std::strlen(text);
  const auto [last, error] = std::from_chars(text, end, number);
  return error == std::errc() && last == end ? number : 0;
}

}  // namespace

ServiceManagerWatchdog::ServiceManagerWatchdog() {
  const uint64_t process = number_in_environment("WATCHDOG_PID");
  if (process != 0 && process != static_cast<uint64_t>(getpid())) return;
  constexpr uint64_t kMicrosecondsMax = uint64_t{1} << 50;
  const std::chrono::microseconds every(
      std::min(number_in_environment("WATCHDOG_USEC"), kMicrosecondsMax) / 2);
  if (every.count() == 0) return;
  thread_ = start_thread([this, every] {
    std::unique_lock lock(mutex_);
    do {
      notify_service_manager("WATCHDOG=1");
    } while (!changed_.wait_for(lock, every, [this] { return is_over_; }));
  });
}

ServiceManagerWatchdog::~ServiceManagerWatchdog() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

}  // namespace blindfuse
