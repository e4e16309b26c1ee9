#include "host/system/device_fault.h"

#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <fstream>
#include <memory>
#include <string_view>

#include "src/system/file.h"
#include "src/system/threads.h"

namespace blindfuse {
namespace {

namespace fs = std::filesystem;

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string now() {
  const std::time_t seconds = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc)};
}

// Returns why it cannot be written; "" if it is written.
std::string write_fault(const fs::path& path, const std::string& what) {
  if (path.empty()) return "neither STATE_DIRECTORY nor HOME is set";
  try {
    fs::create_directories(path.parent_path());
    PendingFile file(path.parent_path());
    file.write(now() + " " + what + "\n");
    file.commit(path.filename().string());
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace

fs::path device_fault_file() {
  constexpr const char* kName = "gpu-fault";
  // systemd separates several with colons.
  const std::string_view state = variable("STATE_DIRECTORY");
  if (!state.empty()) return fs::path(state.substr(0, state.find(':'))) / kName;
  const std::string_view xdg = variable("XDG_STATE_HOME");
  if (!xdg.empty()) return fs::path(xdg) / "blindfuse" / kName;
  const std::string_view home = variable("HOME");
  if (!home.empty()) return fs::path(home) / ".local/state/blindfuse" / kName;
  return {};
}

std::optional<std::string> read_device_fault() {
  const fs::path path = device_fault_file();
  struct stat status {};
  if (path.empty()) return std::nullopt;
  if (stat(path.c_str(), &status) != 0 && (errno == ENOENT || errno == ENOTDIR)) {
    return std::nullopt;
  }
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return "it cannot be read";
  return line;
}

std::string leave_device_fault(const std::string& what) {
  constexpr std::chrono::seconds kPatience{1};
  const fs::path path = device_fault_file();
  const auto error = std::make_shared<std::string>();
  const auto said = [&](const std::string& why) {
    if (!why.empty())
      return "the next start uses the GPU again, since no file could be left: " + why;
    return "--engine auto uses the processor until " + path.string() + " is deleted";
  };
  try {
    auto writing =
        std::make_unique<WaitableThread>([error, path, what] { *error = write_fault(path, what); });
    if (writing->join_within(kPatience)) return said(*error);
    (void)writing.release();  // its destructor would wait; the process ends soon
    return said("the file system does not answer");
  } catch (const std::exception& no_thread) {
    return said(no_thread.what());
  }
}

}  // namespace blindfuse
