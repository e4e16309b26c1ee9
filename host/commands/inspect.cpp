#include "host/commands/commands.h"

#include <sys/stat.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/commands/engine_setup.h"
#include "host/commands/plan_report.h"
#include "host/commands/sample_check.h"
#include "host/database/directory.h"
#include "host/database/loaded_database.h"
#include "host/server/serving/batch_scheduler.h"
#include "src/arithmetic/packing_table.h"
#include "src/base/errors.h"
#include "src/program/printable.h"
#include "src/protocol/epoch_table.h"
#include "src/system/file.h"

namespace blindfuse {
namespace {

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
