// blindfuse-client: private look-ups from the command line.
#include <blindfuse/client.h>
#include <poll.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "client/http_transport.h"
#include "client/key_text.h"
#include "src/base/base64.h"
#include "src/base/errors.h"
#include "src/base/utf8.h"
#include "src/program/command_line.h"
#include "src/program/help_formatter.h"
#include "src/program/printable.h"
#include "src/program/program.h"
#include "src/program/progress.h"
#include "src/protocol/key_hash.h"
#include "src/protocol/manifest.h"

namespace blindfuse {
namespace {

constexpr const char* kGetHelp =
    R"(Examples:
  blindfuse-client get https://example.org tea
  blindfuse-client get https://example.org -- -x   a key that begins with a dash
  blindfuse-client get https://example.org <keys.txt

Prints the value of one KEY as it is, and a newline. For several keys, it prints
KEY, a tab, the value and a newline for each key that is there. Without KEY it
reads keys from standard input, one a line: to the end, unless --stream is given
or a person types them. Blank lines are skipped; '' is the empty KEY. Use --json
for keys and values that contain tabs or newlines. A terminal shows control
characters as \xNN. In an index database, keys are numbers from 0.

A database may be built for requests of several keys. Then one request asks for
up to that many. Rarely, a key finds no place in the requests: it is not asked
for, and is named on standard error. Ask for it together with your next keys.

Downloads hints or masks first if the server has a new epoch.

Exit status: 0 all found, 1 failed, 2 wrong usage, 3 a key is not there, 4 a key
was not asked for.)";

struct Settings {
  std::string url;
  std::vector<std::string> keys;
  std::vector<std::string> keys_after_dashes;
  bool keys_in_brackets = false;  // before --, where the parser takes them apart
  ClientOptions client;
  std::string key_encoding = "utf8";
  bool json = false;
  bool stream = false;
  bool stats = false;
  bool verify = false;
  uint64_t timeout_s = 60;
  std::string api_key_file;
};

// Shows each stage of a client's work on the terminal.
class StageProgress {
 public:
  bool operator()(const ClientProgress& progress) {
    if (progress.stage == ClientStage::kWaitingForAnswer ||
        progress.stage == ClientStage::kDecodingAnswers) {
      return true;
    }
    if (!shown_ || stage_ != progress.stage) {
      shown_.reset();
      stage_ = progress.stage;
      shown_ = make(progress);
    }
    shown_->set_done(progress.done);
    if (progress.total > 0 && progress.done >= progress.total) shown_.reset();
    return true;
  }
  void clear() { shown_.reset(); }

  // Prints each warning once.
  void warn(const std::string& text) {
    if (text == warned_) return;
    warned_ = text;
    if (text.empty()) return;
    clear();
    std::fprintf(stderr, "blindfuse-client: warning: %s\n", text.c_str());
  }

 private:
  static std::unique_ptr<Progress> make(const ClientProgress& progress) {
    const auto shown = [&progress](const char* what, Progress::Unit unit) {
      return std::make_unique<Progress>(what, progress.total, unit);
    };
    switch (progress.stage) {
      case ClientStage::kFetchingHints:
        return shown("fetching hints", Progress::Unit::kBytes);
      case ClientStage::kCheckingHints:
        return shown("checking hints", Progress::Unit::kBytes);
      case ClientStage::kPreparingQueries:
        return shown("preparing queries, rows", Progress::Unit::kItems);
      case ClientStage::kWaitingForLock:
        return shown("waiting for another client that fetches these hints", Progress::Unit::kItems);
      default:
        return shown("the server is busy; waiting", Progress::Unit::kItems);
    }
  }

  ClientStage stage_ = ClientStage::kFetchingHints;
  std::unique_ptr<Progress> shown_;
  std::string warned_;
};

Client connect(Settings& settings, const std::shared_ptr<StageProgress>& progress) {
  settings.client.http.timeout = std::chrono::seconds(settings.timeout_s);
  if (!settings.api_key_file.empty()) {
    settings.client.http.api_key = read_api_key(settings.api_key_file);
  }
  settings.client.progress = [progress](const ClientProgress& report) {
    return (*progress)(report);
  };
  Client client = Client::connect(settings.url, settings.client);
  progress->warn(client.signer().warning);
  return client;
}

// Returns bytes as they are for a program that reads them, and for a person without control
// characters, which would drive the terminal: servers choose values.
std::string shown(int stream, const std::string& text) {
  return isatty(stream) != 0 ? printable(text, std::string_view::npos) : text;
}

// An absent key writes nothing, so that no failed write shows that the reader has gone.
void check_output_is_read() {
  pollfd output{STDOUT_FILENO, 0, 0};
  if (poll(&output, 1, 0) > 0 && (output.revents & (POLLERR | POLLHUP)) != 0) {
    throw ResourceError("standard output has no reader any more");
  }
}

void print_json(const std::string& key, const Answer& answer) {
  nlohmann::json line = {
      {"key", key},
      {"asked", answer.asked},
      {"found", answer.value.has_value()},
      {"seconds",
       {{"prepare", answer.prepare_seconds},
        {"server", answer.server_seconds},
        {"decode", answer.decode_seconds},
        {"total", answer.total_seconds}}},
      {"request_keys", answer.request_keys},
      {"bytes", {{"query", answer.query_bytes}, {"response", answer.response_bytes}}},
  };
  if (answer.value) {
    const std::string& value = *answer.value;
    const bool utf8 = is_utf8(value);
    line["value"] =
        utf8 ? value
             : encode_base64({reinterpret_cast<const uint8_t*>(value.data()), value.size()});
    line["value_encoding"] = utf8 ? "utf8" : "base64";
  }
  print(line.dump(-1, ' ', isatty(STDOUT_FILENO) != 0) + "\n");
}

// Answers keys and prints the results; remembers whether a key was not there, or not asked for.
class Getter {
 public:
  Getter(Client client, const Settings& settings, std::shared_ptr<StageProgress> progress,
         bool with_keys)
      : client_(std::move(client)),
        settings_(settings),
        progress_(std::move(progress)),
        with_keys_(with_keys) {}

  // `texts`: what the keys were given as.
  void get(const std::vector<std::string>& texts, const std::vector<std::string>& keys) {
    const std::vector<Answer> answers = client_.look_up(keys);
    progress_->clear();
    progress_->warn(client_.signer().warning);
    for (size_t i = 0; i < texts.size(); ++i) print_answer(texts[i], answers[i]);
    flush_output();
  }

  // Returns as many as fill whole requests: a request for several keys costs as much for fewer.
  size_t keys_of_a_request() {
    const size_t keys = client_.database().keys_per_request;
    return keys * std::max<size_t>(1, kQueriesPerRequest / keys);
  }
  size_t keys_at_once() { return client_.database().keys_at_once; }
  TransferStats transfers() const { return client_.transfers(); }
  bool all_found() const { return all_found_; }
  bool all_asked() const { return all_asked_; }

 private:
  void print_answer(const std::string& text, const Answer& answer) {
    if (settings_.json) {
      print_json(text, answer);
    } else if (answer.value) {
      print((with_keys_ ? shown(STDOUT_FILENO, text) + "\t" : "") +
            shown(STDOUT_FILENO, *answer.value) + "\n");
    } else if (answer.asked) {
      std::fprintf(stderr, "not there: %s\n", shown(STDERR_FILENO, text).c_str());
    }
    if (!answer.asked) {
      std::fprintf(stderr, "not asked for: %s\n", shown(STDERR_FILENO, text).c_str());
    }
    all_found_ = all_found_ && answer.value.has_value();
    all_asked_ = all_asked_ && answer.asked;
  }

  Client client_;
  const Settings& settings_;
  std::shared_ptr<StageProgress> progress_;
  const bool with_keys_;
  bool all_found_ = true;
  bool all_asked_ = true;
};

void print_stats(const TransferStats& transfers, std::chrono::steady_clock::time_point start) {
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  std::fprintf(stderr,
               "requests: %" PRIu64 ", bytes sent: %" PRIu64 ", bytes received: %" PRIu64
               ", seconds: %.3f\n",
               transfers.requests, transfers.bytes_sent, transfers.bytes_received, time.count());
}

void run_get(Settings& settings) {
  if (settings.keys_in_brackets) {
    throw UsageError("put -- before a KEY in brackets: get URL -- '[x]'");
  }
  settings.keys.insert(settings.keys.end(), settings.keys_after_dashes.begin(),
                       settings.keys_after_dashes.end());
  const auto decoded = [encoding = key_encodings().at(settings.key_encoding)](
                           const std::vector<std::string>& texts) {
    std::vector<std::string> keys;
    for (const std::string& text : texts) keys.push_back(decode_key(text, encoding));
    return keys;
  };
  // All keys are checked before the server receives a query for any.
  const std::vector<std::string> keys = decoded(settings.keys);
  const bool from_input = settings.keys.empty();
  const auto start = std::chrono::steady_clock::now();
  const auto progress = std::make_shared<StageProgress>();
  Getter getter(connect(settings, progress), settings, progress,
                from_input || settings.keys.size() > 1);
  if (!from_input) {
    getter.get(settings.keys, keys);
  } else {
    if (isatty(STDIN_FILENO) != 0) {
      std::fputs("keys from standard input, one a line; end with Ctrl-D\n", stderr);
    }
    // A key takes four thirds and padding as base64, and twice its length as hex.
    LineInput input(STDIN_FILENO, 2 * kKeyBytesMax + 4);
    const bool streams = settings.stream || isatty(STDIN_FILENO) != 0;
    const size_t count = streams ? getter.keys_of_a_request() : getter.keys_at_once();
    const auto next = [&] { return streams ? input.next_arrived(count) : input.next(count); };
    for (auto lines = next(); !lines.empty(); lines = next()) {
      check_output_is_read();
      getter.get(lines, decoded(lines));
    }
  }
  if (settings.stats) print_stats(getter.transfers(), start);
  if (!getter.all_asked()) throw ExitStatus{kExitNotAsked};
  if (!getter.all_found()) throw ExitStatus{kExitNotThere};
}

void run_sync(Settings& settings) {
  if (!settings.keys_after_dashes.empty()) {
    throw UsageError("sync takes no keys, and " + settings.keys_after_dashes.front() +
                     " is one argument too many");
  }
  const auto progress = std::make_shared<StageProgress>();
  Client client = connect(settings, progress);
  const SyncResult result = client.sync(settings.verify);
  progress->clear();
  const SignerStatus signer = client.signer();
  progress->warn(signer.warning);
  if (settings.json) {
    const nlohmann::json line = {
        {"epoch", result.epoch},
        {"shards", result.shard_count},
        {"parts", result.part_count},
        {"shards_fetched", result.shards_fetched},
        {"bytes_fetched", result.bytes_fetched},
        {"hint_bytes", result.hint_bytes},
        {"seconds", result.seconds},
        {"signer", signer.signer},
        {"sequence", signer.sequence},
        {"signed_time", signer.time},
    };
    print(line.dump() + "\n");
    return;
  }
  const std::string part = client.database().mode == "packed" ? "mask" : "hint";
  const bool with_table =
      result.bytes_fetched > result.hint_bytes / result.part_count * result.shards_fetched;
  std::string fetched;
  if (result.bytes_fetched > 0) {
    fetched = " (" + human_bytes(result.bytes_fetched) + (with_table ? " with the table)" : ")");
  }
  print("epoch " + result.epoch.substr(0, 16) + ": " + std::to_string(result.shards_fetched) +
        " of " + counted(result.part_count, part) + " fetched" + fetched + "; all " + part +
        "s are " + human_bytes(result.hint_bytes) + "\n" +
        (signer.signer.empty() ? "not signed\n"
                               : "signed by " + signer.signer + " as " +
                                     numbered(signer.sequence, signer.time) + "\n"));
}

void add_common_options(CLI::App& command, Settings& settings) {
  command.add_option("URL", settings.url, "Address of the server, such as https://example.org")
      ->required();
  command.option_defaults()->group("Server");
  command
      .add_option("--ca-file", settings.client.http.ca_file,
                  "Certificates (PEM) to trust for HTTPS (default: those of the system)")
      ->type_name("FILE");
  command
      .add_option("--api-key-file", settings.api_key_file,
                  "File whose first line is the API key for the server")
      ->type_name("FILE");
  command
      .add_option(
          "--proxy", settings.client.http.proxy,
          "HTTP proxy: http://HOST:PORT or http://USER:PASSWORD@HOST:PORT (default: what "
          "https_proxy, all_proxy and no_proxy say; for http, http_proxy). A server on this "
          "machine is reached without it")
      ->type_name("URL");
  command
      .add_option("--server-key", settings.client.server_key,
                  "Public key of the database: 64 hex digits. Refuse a database that is not signed "
                  "with it, or that is older than one seen before")
      ->type_name("HEX")
      ->check(
          [](const std::string& key) {
            std::error_code ignored;
            return std::filesystem::exists(key, ignored)
                       ? "it is a file; give the public key itself, which `blindfuse keygen` "
                         "printed, and which `blindfuse inspect` shows as signer"
                       : "";
          },
          "");
  command.add_flag("--allow-rollback", settings.client.allow_rollback,
                   "With a key, also accept a database that is older than one seen before");
  command
      .add_option("--timeout", settings.timeout_s,
                  "Seconds that a look-up or a sync may take, plus one for each 32,000 bytes to "
                  "transfer")
      ->check(CLI::Range(1, 86'400))
      ->capture_default_str();
  command
      .add_option(
          "--mode", settings.client.mode,
          "Refuse a database in another mode. Secrecy rests on LWE in hint mode, and on ring "
          "LWE and circular security in packed mode (default: accept both)")
      ->check(CLI::IsMember(std::vector<std::string>{"hint", "packed"}));
  command
      .add_option("--hint-bytes-max", settings.client.hint_bytes_max,
                  "Refuse a database whose hints or masks are larger in all")
      ->type_name("BYTES")
      ->transform(byte_units())
      ->capture_default_str();
  command
      .add_option("--transfer-bytes-max", settings.client.transfer_bytes_max,
                  "Refuse a database whose query, response, or table of shards and packs is larger")
      ->type_name("BYTES")
      ->transform(byte_units())
      ->capture_default_str();
  command.option_defaults()->group("Options");
  command
      .add_option("--cache", settings.client.cache_folder,
                  "Folder for hints or masks (default: $XDG_CACHE_HOME/blindfuse or "
                  "~/.cache/blindfuse)")
      ->type_name("DIR");
  command.add_flag("--json", settings.json, "Print JSON, one object a line");
}

void add_get(CLI::App& app, Settings& settings) {
  CLI::App* get = app.add_subcommand("get", "Look up keys privately.");
  get->footer(kGetHelp);
  add_common_options(*get, settings);
  get->add_flag("--stream", settings.stream,
                "Answer keys from standard input as they arrive. The server then sees when they "
                "arrive, and how long it takes to print the answers before");
  get->add_flag("--stats", settings.stats,
                "Print the number of requests, their bytes and the seconds on standard error");
  get->add_option("KEY", settings.keys, "Keys to look up");
  settings.client.prepare_batch = 0;
  get->add_option("--prepare", settings.client.prepare_batch,
                  "Queries to prepare at once. In hint mode, several cost little more than one. "
                  "Where requests are for several keys, one query is a request (default: as many "
                  "as the keys need, at most 16, and one where requests are for several keys)")
      ->check(CLI::Range(1, 1024));
  get->add_option("--threads", settings.client.thread_count,
                  "Number of threads that prepare queries in hint mode; 0: as many as processors")
      ->check(CLI::Range(0u, 1024u))
      ->capture_default_str();
  get->add_option(
         "--hint-memory-bytes-max", settings.client.hint_memory_bytes_max,
         "Keep hints or masks in memory if all of them take at most this many bytes. If not, "
         "each look-up reads all of them from the cache")
      ->type_name("BYTES")
      ->transform(byte_units())
      ->capture_default_str();
  get->add_option("--key-encoding", settings.key_encoding, "How keys are written")
      ->check(CLI::IsMember(key_encodings()))
      ->capture_default_str();
  get->callback([&settings] { run_get(settings); });
}

void add_sync(CLI::App& app, Settings& settings) {
  CLI::App* sync = app.add_subcommand("sync", "Download all hints or masks that changed.");
  sync->footer("Example:\n  blindfuse-client sync https://example.org");
  add_common_options(*sync, settings);
  sync->add_flag("--verify", settings.verify,
                 "Check every hint or mask in the cache. Download all again if one is damaged");
  sync->callback([&settings] { run_sync(settings); });
}

}  // namespace
}  // namespace blindfuse

int main(int argc, char** argv) {
  CLI::App app("Look up keys privately: the server learns neither the key nor whether it is there.",
               "blindfuse-client");
  app.require_subcommand(1);
  app.footer("\"blindfuse-client COMMAND --help\" shows the options of a command.");
  blindfuse::format_help(app);
  blindfuse::Settings settings;
  blindfuse::add_get(app, settings);
  blindfuse::add_sync(app, settings);
  // Arguments after -- are keys, byte for byte: the parser would read "[a,b]" as two.
  char** const end = argv + argc;
  char** const dashes = std::find_if(argv, end, [](std::string_view text) { return text == "--"; });
  if (dashes != end) settings.keys_after_dashes.assign(dashes + 1, end);
  settings.keys_in_brackets = std::any_of(argv + 1, dashes, [](std::string_view text) {
    return text.starts_with('[') && text.ends_with(']');
  });
  return blindfuse::run_program(app, static_cast<int>(dashes - argv), argv,
                                [] { return "commit " + std::string(blindfuse::kSourceCommit); });
}
