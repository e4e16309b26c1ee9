#include "host/commands/commands.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "host/commands/engine_setup.h"
#include "host/commands/plan_report.h"
#include "host/database/directory.h"
#include "host/database/loaded_database.h"
#include "host/publish/samples.h"
#include "host/server/service.h"
#include "host/server/serving/batch_scheduler.h"
#include "host/server/serving/serving_epoch.h"
#include "src/arithmetic/packing_table.h"
#include "src/base/base64.h"
#include "src/base/errors.h"
#include "src/base/hex.h"
#include "src/program/printable.h"
#include "src/program/program.h"
#include "src/protocol/epoch_table.h"
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

struct SampleCheck {
  size_t keys = 0;    // found, each with the value that it had when it was built in
  size_t absent = 0;  // random keys that were rightly not found
};

// Asks for the database's sample keys through the real query path: a real server serves this
// database on loopback, and the client program is the one next to ours. The secrets of the queries
// stay in the client's process.
//
// Throws InputError, which names the key, if an answer is wrong. Throws ResourceError if the client
// program is missing or fails. end: ends the process if the engine's device is lost.
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

constexpr uint64_t kSamplesBytesMax = 4 << 20;  // sixteen keys of 64 KiB in Base64, and some

struct InspectCommand {
  std::string directory;
  bool verify = false;
  std::string engine = "auto";
  unsigned thread_count = 0;
  DeviceLimit limit;
  bool json = false;
};

struct Inspection {
  ParsedManifest parsed;
  bool has_right_signature = false;
  EpochTable table;
  size_t retired = 0;
  uint64_t published = 0;  // seconds since 1970
  std::optional<SampleCheck> check;
};

// Returns 0 where the time cannot be told.
uint64_t modified_at(const std::filesystem::path& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 ? static_cast<uint64_t>(status.st_mtime) : 0;
}

Inspection inspect(const InspectCommand& command) {
  const DatabaseDirectory directory(command.directory);
  const ParsedManifest parsed = directory.read_manifest();
  Inspection found{parsed, is_rightly_signed(parsed), {}, 0, modified_at(directory.manifest_file()),
                   {}};
  found.table = parse_epoch_table(directory.read_table(parsed.manifest), parsed.manifest.layout);
  found.retired = directory.read_retired(parsed.epoch).size();
  if (command.verify) {
    const bool is_packed = parsed.manifest.layout.mode() == Mode::kPacked;
    DeviceEnd end;
    found.check = end_if_device_lost(end, [&] {
      const CheckedEngines engines = make_checked_engines(
          {command.engine, command.thread_count,
           is_packed ? std::vector<std::string>{"packing"} : std::vector<std::string>{}},
          command.limit, end);
      LoadedDatabase database = load_database(command.directory, engines.get());
      check_epoch(database, BatchLimits{}.batch_max, command.thread_count);
      const std::string samples = directory.read_samples(database.manifest, kSamplesBytesMax);
      return check_samples(std::move(database), samples, end);
    });
  }
  return found;
}

std::pair<uint64_t, uint64_t> fewest_and_most_keys(const ShardTable& table) {
  const auto [fewest, most] = std::ranges::minmax(table, {}, &ShardEntry::key_count);
  return {fewest.key_count, most.key_count};
}

void print_json(const Inspection& found) {
  nlohmann::json object = layout_json(found.parsed.manifest.layout);
  const auto [fewest, most] = fewest_and_most_keys(found.table.shards);
  object["table_bytes"] = epoch_table_bytes(found.parsed.manifest.layout);
  object["epoch"] = found.parsed.epoch;
  object["published"] = found.published;
  object["published_utc"] = utc_text(found.published);
  object["signature"] = signature_json(found.parsed.signature);
  if (found.parsed.signature) object["signature"]["right"] = found.has_right_signature;
  object["retired_epochs"] = found.retired;
  object["shard_keys_fewest"] = fewest;
  object["shard_keys_most"] = most;
  object["verified"] = found.check.has_value();
  if (found.check) object["samples_verified"] = found.check->keys;
  std::puts(object.dump(2).c_str());
}

void print_line(const char* what, const std::string& value) {
  std::printf("%-14s %s\n", what, value.c_str());
}

void print_text(const Inspection& found) {
  const Layout& layout = found.parsed.manifest.layout;
  const bool packed = layout.mode() == Mode::kPacked;
  const auto [fewest, most] = fewest_and_most_keys(found.table.shards);
  print_line("epoch", found.parsed.epoch + " (" + std::to_string(found.retired) + " before it)");
  print_line("published", utc_text(found.published) + " (time of manifest.json)");
  if (const auto& signature = found.parsed.signature) {
    print_line("signed", numbered(signature->sequence, signature->time) +
                             (found.has_right_signature ? "" : "; THE SIGNATURE IS WRONG"));
    print_line("signer", encode_hex(signature->signer));
  } else {
    print_line("signed", "no");
  }
  print_line("keys", std::to_string(layout.key_count) +
                         (layout.kind == DatabaseKind::kIndex ? ", addressed by number" : ""));
  if (layout.batch) {
    print_line("requests", "for up to " + counted(layout.batch->keys_per_request, "key") + ", in " +
                               counted(layout.bucket_count(), "bucket") + " of " +
                               counted(layout.bucket_shard_count(), "shard"));
    print_line("records", std::to_string(layout.record_count()) + ", " +
                              std::to_string(kBucketChoices) + " of each key");
  }
  print_line("shards", std::to_string(layout.shard_count) + " of " +
                           (fewest == most ? "" : std::to_string(fewest) + " to ") +
                           counted(most, layout.batch ? "record" : "key"));
  print_line("matrix", std::to_string(layout.row_count) + " rows x " +
                           counted(layout.column_count(), "column") + ", " +
                           human_bytes(layout.matrix_bytes()));
  print_line("record", std::to_string(layout.record.digest_bytes) + " bytes of digest, " +
                           std::to_string(layout.record.length_bytes) + " of length, up to " +
                           std::to_string(layout.record.value_bytes) + " of value");
  print_line("mode", std::string(mode_name(layout.mode())));
  print_line("parameters", std::string(layout.lwe->name) + ", arity " +
                               std::to_string(layout.arity) + ", bits: query " +
                               std::to_string(layout.query_bits) + ", response " +
                               std::to_string(layout.response_bits) +
                               (packed ? ", mask " : ", hint ") + std::to_string(layout.hint_bits));
  print_line("security", security_line(*layout.lwe));
  char failure[64];
  std::snprintf(failure, sizeof failure, "at most 2^%.1f a look-up", layout.log2_failure());
  print_line("failure", failure);
  if (packed) {
    print_line("packs", std::to_string(layout.pack_count()) + " of up to " +
                            counted(kPackColumns, "column") + ", with " +
                            human_bytes(layout.packing_table_bytes()) +
                            " of tables for the server's memory");
  }
  if (layout.second) {
    print_line("levels", "2, " + counted(layout.second_row_count(), "row") + " of " +
                             counted(layout.second->group_shards, "shard") + ", bits: query " +
                             std::to_string(layout.second->query_bits) + ", response " +
                             std::to_string(layout.second->response_bits) + ", mask " +
                             std::to_string(layout.second->mask_bits));
  }
  print_line("table", human_bytes(epoch_table_bytes(layout)) + " once an epoch");
  print_line(packed ? "masks" : "hint", human_bytes(layout.hint_bytes()) + " once an epoch");
  print_line(
      layout.batch ? "request" : "look-up",
      human_bytes(layout.query_bytes()) + " up, " + human_bytes(layout.response_bytes()) + " down");
  if (found.check) {
    print_line("verified", "every file against its hash; " +
                               counted(found.check->keys, "sample key") +
                               " found and 1 made-up key not found through the real "
                               "client");
  }
}

}  // namespace

void add_inspect_command(CLI::App& program) {
  auto options = std::make_shared<InspectCommand>();
  CLI::App* command = program.add_subcommand("inspect", "Show what is in a database directory.");
  command->footer("Example:\n  blindfuse inspect words.blindfuse --verify");
  command->add_option("directory", options->directory, "Database directory")->required();
  command->add_flag("--verify", options->verify,
                    "Check every file against its hash. Look up some keys through a server on "
                    "loopback and the client library");
  command
      ->add_option("--engine", options->engine,
                   "With --verify: the engine that computes, as for serve")
      ->type_name("ENGINE")
      ->capture_default_str();
  command
      ->add_option("--threads", options->thread_count,
                   "Number of threads; 0: one for each processor that the process may use, within "
                   "the CPU limit of its control group")
      ->check(CLI::Range(0u, 1024u))
      ->capture_default_str();
  options->limit.add_to(*command);
  command->add_flag("--json", options->json, "Print the report as JSON");
  command->callback([options] {
    const Inspection found = inspect(*options);
    options->json ? print_json(found) : print_text(found);
    check_signature(found.parsed);
  });
}

}  // namespace blindfuse
