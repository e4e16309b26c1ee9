#include "host/commands/sample_check.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>
#include <vector>

#include "host/publish/samples.h"
#include "host/server/service.h"
#include "host/server/serving/serving_epoch.h"
#include "src/base/base64.h"
#include "src/base/errors.h"
#include "src/base/hex.h"
#include "src/program/program.h"
#include "src/system/file.h"
#include "src/system/random.h"

extern char** environ;

namespace blindfuse {
namespace {

namespace fs = std::filesystem;

std::span<const uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

fs::path client_program() {
  const fs::path path = fs::read_symlink("/proc/self/exe").parent_path() / "blindfuse-client";
  if (!fs::exists(path)) {
    throw ResourceError("--verify asks through the client program, and there is no " +
                        path.string());
  }
  return path;
}

// A temporary folder: the client's cache must not mix with the user's own.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (fs::temp_directory_path() / "blindfuse-verify-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) {
      throw ResourceError("cannot create a folder in " + fs::temp_directory_path().string() + ": " +
                          std::strerror(errno));
    }
    path_ = name;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// Our environment without BLINDFUSE_ variables: the operator's settings are not for the client.
std::vector<char*> client_environment() {
  std::vector<char*> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!std::string_view(*variable).starts_with("BLINDFUSE_")) variables.push_back(*variable);
  }
  variables.push_back(nullptr);
  return variables;
}

// Runs a program and returns what it prints; its standard error is ours.
std::string run_client(const std::vector<std::string>& arguments) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw ResourceError("cannot create a pipe");
  const FileDescriptor reading(ends[0]);
  FileDescriptor writing(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, writing.get(), STDOUT_FILENO);
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_t child = 0;
  const int error =
      posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), client_environment().data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    throw ResourceError("cannot run " + arguments[0] + ": " + std::strerror(error));
  }
  writing = FileDescriptor();
  std::string output;
  std::array<char, 4096> block;
  for (;;) {
    const ssize_t got = read(reading.get(), block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    output.append(block.data(), static_cast<size_t>(got));
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  const bool answered = code == 0 || code == kExitNotThere || code == kExitNotAsked;
  if (!answered) throw ResourceError(arguments[0] + " failed; see its message above");
  return output;
}

// A request for several keys may have no bucket left for one.
bool was_asked(const nlohmann::json& answer) { return answer.value("asked", true); }

// The value that the client printed for one key; nothing for one that is not there.
std::optional<std::string> value_of(const nlohmann::json& answer) {
  if (!answer.at("found").get<bool>()) return std::nullopt;
  const auto value = answer.at("value").get<std::string>();
  if (answer.at("value_encoding") == "utf8") return value;
  auto decoded = decode_base64(value);
  if (!decoded) throw ResourceError("the client program printed a malformed value");
  return decoded;
}

std::string random_key() {
  std::array<uint8_t, 16> bytes;
  fill_from_system(bytes);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<nlohmann::json> answers_of(const std::string& output) {
  std::vector<nlohmann::json> answers;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    answers.push_back(nlohmann::json::parse(line));
  }
  return answers;
}

}  // namespace

SampleCheck check_samples(LoadedDatabase database, const std::string& samples_text,
                          DeviceEnd& end) {
  const std::vector<Sample> samples = parse_samples(samples_text);
  const bool keyword = database.manifest.layout.kind == DatabaseKind::kKeyword;
  const std::string beyond_the_end = std::to_string(database.manifest.layout.key_count);
  const ScratchFolder cache;
  ServerMetrics metrics;
  metrics.set_device_lost_callback([&end](const std::string& what) { end.end(what); });
  const ServedEpochs epochs(
      std::make_shared<const ServingEpoch>(std::move(database), BatchLimits{}, &metrics));
  const DatabaseServer server(epochs, metrics, http::ListeningSocket({}), ServerOptions{});
  std::vector<std::string> arguments = {client_program(), "get", "--json", "--cache", cache.path()};
  if (keyword) arguments.insert(arguments.end(), {"--key-encoding", "base64"});
  arguments.insert(arguments.end(), {server.url(), "--"});
  for (const Sample& sample : samples) {
    arguments.push_back(keyword ? encode_base64(bytes_of(sample.key)) : sample.key);
  }
  arguments.push_back(keyword ? encode_base64(bytes_of(random_key())) : beyond_the_end);

  const std::vector<nlohmann::json> answers = answers_of(run_client(arguments));
  if (answers.size() != samples.size() + 1) {
    throw ResourceError("the client program did not answer every key");
  }
  SampleCheck checked;
  for (size_t i = 0; i < samples.size(); ++i) {
    if (!was_asked(answers[i])) continue;
    ++checked.keys;
    const auto value = value_of(answers[i]);
    if (!value || sha256(bytes_of(*value)) != samples[i].value) {
      throw InputError("the sample key with the bytes " + encode_hex(bytes_of(samples[i].key)) +
                       (value ? " has another value than it was built with" : " is not found"));
    }
  }
  if (was_asked(answers.back())) {
    ++checked.absent;
    if (value_of(answers.back()))
      throw InputError("a made-up key is found, which no input has; build the database again");
  }
  return checked;
}

}  // namespace blindfuse
