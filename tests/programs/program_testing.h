// Runs the real programs, as a person or a script would.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/paths.h"
#include "tests/publish/builder_testing.h"

extern char** environ;

namespace blindfuse::program_testing {

// Tests of the programs look at what was built, too.
using namespace builder_testing;

inline const std::string kBlindfuse = paths::program_folder() + "/blindfuse";
inline const std::string kBlindfuseClient = paths::program_folder() + "/blindfuse-client";

// A command, or what comes after it.
using Words = std::vector<std::string>;

inline Words operator+(Words first, const Words& rest) {
  first.insert(first.end(), rest.begin(), rest.end());
  return first;
}

// A command with one of the tests' modules loaded, and variables for that.
inline Words with_module(const Words& command, const std::string& module, const Words& variables) {
  const char* sanitizer = std::getenv("ASAN_OPTIONS");
  return Words{
             "env",
             "LD_PRELOAD=" + paths::program_folder() + "/../tests/" + module + ".so",
             // What is loaded here comes before the sanitizer.
             "ASAN_OPTIONS=" +
                 (sanitizer != nullptr ? std::string(sanitizer) + ":" : std::string()) +
                 "verify_asan_link_order=0",
         } +
         variables + command;
}

// A program that is running, with its output going into files of `folder`.
class RunningProgram {
 public:
  RunningProgram(const TemporaryFolder& folder, const Words& arguments,
                 const std::string& input = "") {
    static int number = 0;
    const std::string stem = (folder.path() / ("run" + std::to_string(number++))).string();
    out_ = stem + ".out";
    err_ = stem + ".err";
    std::ofstream(stem + ".in", std::ios::binary) << input;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, (stem + ".in").c_str(), O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, out_.c_str(), O_WRONLY | O_CREAT, 0600);
    posix_spawn_file_actions_addopen(&actions, 2, err_.c_str(), O_WRONLY | O_CREAT, 0600);
    // A server must not outlive a test that dies.
    Words command = Words{"setpriv", "--pdeathsig", "KILL"} + arguments;
    std::vector<char*> argv;
    for (std::string& argument : command) argv.push_back(argument.data());
    argv.push_back(nullptr);
    if (posix_spawnp(&child_, argv[0], &actions, nullptr, argv.data(), environ) != 0) std::abort();
    posix_spawn_file_actions_destroy(&actions);
  }
  ~RunningProgram() {
    if (child_ != 0) {
      send(SIGKILL);
      wait();
    }
  }
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;

  pid_t id() const { return child_; }
  void send(int signal) const { kill(child_, signal); }

  // By itself or by a signal; wait() still has its status.
  bool has_ended() const {
    siginfo_t state{};
    return waitid(P_PID, static_cast<id_t>(child_), &state, WEXITED | WNOHANG | WNOWAIT) != 0 ||
           state.si_pid != 0;
  }

  // Its exit status, or minus the signal that ended it.
  int wait() {
    int status = 0;
    while (waitpid(child_, &status, 0) < 0 && errno == EINTR) {
    }
    child_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  std::string out() const { return read_whole(out_); }
  std::string err() const { return read_whole(err_); }

 private:
  pid_t child_ = 0;
  std::string out_;
  std::string err_;
};

struct ProgramResult {
  int status;
  std::string out;
  std::string err;
};

inline ProgramResult run(const TemporaryFolder& folder, const Words& arguments,
                         const std::string& input = "") {
  RunningProgram program(folder, arguments, input);
  const int status = program.wait();
  return {status, program.out(), program.err()};
}

// `blindfuse serve` on a free port of loopback.
class RunningServer {
 public:
  // Makes another command of a command: one that runs it.
  using Wrapper = std::function<Words(const Words&)>;

  RunningServer(const TemporaryFolder& folder, const std::filesystem::path& database,
                const std::string& listen = "127.0.0.1:0", const Words& more = {},
                const Wrapper& wrapper = {})
      : ready_file_(folder.path() / ("ready" + std::to_string(number_++))),
        admin_socket_(folder.path() / ("admin" + std::to_string(number_++))),
        program_(folder,
                 wrapped(command(database, listen, ready_file_, admin_socket_, more), wrapper)) {
    // A server that does not come up within a minute, even under a sanitizer on a busy machine,
    // never will.
    for (int i = 0; i < 6000 && !std::filesystem::exists(ready_file_) && !program_.has_ended();
         ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    url_ = read_whole(ready_file_);
    while (!url_.empty() && url_.back() == '\n') url_.pop_back();
  }

  const std::string& url() const { return url_; }
  // Of its admin listener.
  std::string admin_url() const { return "unix:" + admin_socket_.string(); }
  const std::filesystem::path& ready_file() const { return ready_file_; }
  RunningProgram& program() { return program_; }

  // Asks it to finish, and returns its exit status.
  int stop() {
    program_.send(SIGTERM);
    return program_.wait();
  }

 private:
  static Words wrapped(const Words& command, const Wrapper& wrapper) {
    return wrapper ? wrapper(command) : command;
  }
  static Words command(const std::filesystem::path& database, const std::string& listen,
                       const std::filesystem::path& ready_file,
                       const std::filesystem::path& admin_socket, const Words& more) {
    return Words{kBlindfuse,
                 "serve",
                 database,
                 "--listen",
                 listen,
                 "--admin-listen",
                 "unix:" + admin_socket.string(),
                 "--ready-file",
                 ready_file} +
           more;
  }

  static inline int number_ = 0;
  std::filesystem::path ready_file_;
  std::filesystem::path admin_socket_;
  RunningProgram program_;
  std::string url_;
};

inline std::string write_file(const std::filesystem::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

}  // namespace blindfuse::program_testing
