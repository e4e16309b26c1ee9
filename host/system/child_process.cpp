#include "host/system/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "src/base/errors.h"

namespace blindfuse {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kLineBytesMax = 4'096;
// A process that was killed ends within this time.
constexpr std::chrono::seconds kKillPatience{5};

// The arguments by which posix_spawn() sets up the child.
class SpawnPlan {
 public:
  explicit SpawnPlan(int output) {
    posix_spawn_file_actions_init(&files_);
    posix_spawn_file_actions_addopen(&files_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files_, output, STDOUT_FILENO);
    posix_spawnattr_init(&attributes_);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&files_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  // Returns 0, or the number of the error.
  int run(const std::string& program, std::vector<std::string> arguments, pid_t& pid) const {
    arguments.insert(arguments.begin(), program);
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    return posix_spawn(&pid, program.c_str(), &files_, &attributes_, argv.data(), environ);
  }

 private:
  posix_spawn_file_actions_t files_{};
  posix_spawnattr_t attributes_{};
};

[[noreturn]] void fail(const std::string& program, int error) {
  throw ResourceError("cannot start " + program + ": " + std::strerror(error));
}

std::string text_of(int status) {
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    return "signal " + std::to_string(signal) + " (" + strsignal(signal) + ")";
  }
  if (WEXITSTATUS(status) == 0) return "";
  return "exit status " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

std::filesystem::path own_program() { return "/proc/self/exe"; }

ChildProcess::ChildProcess(const std::filesystem::path& program,
                           const std::vector<std::string>& arguments) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail(program.string(), errno);
  output_ = FileDescriptor(ends[0]);
  const FileDescriptor input(ends[1]);
  const int error = SpawnPlan(input.get()).run(program.string(), arguments, pid_);
  if (error == 0) return;
  pid_ = -1;
  fail(program.string(), error);
}

ChildProcess::~ChildProcess() { end(std::chrono::milliseconds(0)); }

ChildProcess::Line ChildProcess::read_line(std::chrono::milliseconds patience) {
  const auto give_up = Clock::now() + patience;
  for (;;) {
    if (const size_t end = pending_.find('\n'); end != std::string::npos && end <= kLineBytesMax) {
      Line line{Said::kLine, pending_.substr(0, end)};
      pending_.erase(0, end + 1);
      return line;
    }
    if (pending_.size() > kLineBytesMax) return {Said::kEnd, ""};
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(give_up - Clock::now()).count();
    pollfd waiting{output_.get(), POLLIN, 0};
    const int ready = poll(&waiting, 1, static_cast<int>(std::max<int64_t>(0, left)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) return {Said::kNothing, ""};
    char bytes[kLineBytesMax];
    const ssize_t count = read(output_.get(), bytes, sizeof bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return {Said::kEnd, ""};
    pending_.append(bytes, static_cast<size_t>(count));
  }
}

std::optional<int> ChildProcess::wait(std::chrono::milliseconds patience) {
  constexpr std::chrono::milliseconds kLook{2};
  const auto give_up = Clock::now() + patience;
  for (;;) {
    int status = 0;
    const pid_t ended = waitpid(pid_, &status, WNOHANG);
    if (ended == pid_) return status;
    if (ended < 0 && errno != EINTR) return 0;  // somebody else has waited for it
    if (Clock::now() >= give_up) return std::nullopt;
    std::this_thread::sleep_for(kLook);
  }
}

std::string ChildProcess::end(std::chrono::milliseconds patience) {
  if (pid_ < 0) return "";
  auto status = wait(patience);
  if (!status) {
    kill(pid_, SIGKILL);
    status = wait(kKillPatience);
  }
  pid_ = -1;
  return status ? text_of(*status) : "it cannot be killed";
}

}  // namespace blindfuse
