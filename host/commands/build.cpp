#include "host/commands/commands.h"

#include <malloc.h>
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/commands/engine_setup.h"
#include "host/commands/layout_options.h"
#include "host/commands/plan_report.h"
#include "host/publish/database_builder.h"
#include "host/publish/shard_plan.h"
#include "host/publish/signing_key.h"
#include "src/base/errors.h"
#include "src/base/hex.h"
#include "src/program/command_line.h"
#include "src/program/help_formatter.h"
#include "src/program/log.h"
#include "src/program/printable.h"

namespace blindfuse {
namespace {

struct BuildCommand {
  InputChoices input;
  std::string output;
  LayoutOptions layout;
  std::string signing_key;  // the file; empty: none
  bool drop_signature = false;
  uint32_t value_room = 0;
  bool fresh = false;
  bool allow_shrink = false;
  bool allow_padding = false;
  bool dry_run = false;
  std::string engine = "auto";
  unsigned thread_count = 0;
  DeviceLimit limit;
  bool json = false;
  const CLI::Option* lookups = nullptr;
};

bool is_packed(const Layout& layout) { return layout.mode() == Mode::kPacked; }

void warn_of_skew(const BuildReport& report) {
  const Survey& survey = report.survey;
  // A factor of two between nearly all values and the longest is worth a message; a few bytes are
  // not.
  if (survey.longest_value < 64 || survey.longest_value < 2 * survey.percentile99_value) return;
  const uint32_t header = report.layout.record_bytes() - report.layout.record.value_bytes;
  const uint64_t cut = report.layout.matrix_bytes() / report.layout.record_bytes() *
                       (header + survey.percentile99_value);
  log_warning(
      "values: median {} bytes, 99 % at most {}, longest {}. Every record has room for the "
      "longest: the matrix has {}, and would have {} if values were cut at {} bytes "
      "(--value-bytes-max {} --long-values truncate); responses and {} shrink alike",
      survey.median_value, survey.percentile99_value, survey.longest_value,
      human_bytes(report.layout.matrix_bytes()), human_bytes(cut), survey.percentile99_value,
      survey.percentile99_value, is_packed(report.layout) ? "packing tables" : "hint");
}

// Says so where clients that download the input itself would transfer less, and reveal no more.
void note_small_input(const BuildReport& report) {
  const Layout& layout = report.layout;
  const uint64_t transferred = layout.hint_bytes() + layout.query_bytes() + layout.response_bytes();
  if (report.input_bytes >= transferred) return;
  log_info(
      "a client transfers {} for its first {} in an epoch, and all keys and values have {}: "
      "clients "
      "that download them all transfer less, and reveal as little",
      human_bytes(transferred), request_name(layout), human_bytes(report.input_bytes));
}

// "1 key (1000 before)"
std::string keys_of(const BuildReport& report) {
  const std::string keys = counted(report.layout.key_count, "key");
  if (report.keys_before.value_or(report.layout.key_count) == report.layout.key_count) return keys;
  return keys + " (" + std::to_string(*report.keys_before) + " before)";
}

void print_json(const BuildReport& report) {
  nlohmann::json object = {
      {"epoch", report.epoch},
      {"changed", report.changed},
      {"signature", signature_json(report.signature)},
      {"signature_changed", report.signature_changed},
      {"layout", layout_json(report.layout)},
      {"layout_reason", report.layout_reason},
      {"shards_rebuilt", report.shards_rebuilt},
      {"packs_rebuilt", report.packs_rebuilt},
      {"keys_before", report.keys_before ? nlohmann::json(*report.keys_before) : nullptr},
      {"input_bytes", report.input_bytes},
      {"duplicates_dropped", report.survey.duplicates_dropped},
      {"truncated_values", report.truncated_values},
      {"value_bytes",
       {{"shortest", report.survey.shortest_value},
        {"median", report.survey.median_value},
        {"percentile99", report.survey.percentile99_value},
        {"longest", report.survey.longest_value}}},
      {"seconds",
       {{"reading", report.seconds_reading},
        {"surveying", report.seconds_surveying},
        {"filters", report.seconds_filters},
        {"hint", report.seconds_hint},
        {"total", report.seconds_total}}},
  };
  std::puts(object.dump(2).c_str());
}

const char* news_of(const BuildReport& report) {
  if (report.changed) return "a new epoch is published";
  if (!report.signature_changed) return "the epoch is unchanged";
  return report.signature ? "the epoch is unchanged, and is published with a new signature"
                          : "the epoch is unchanged, and is published without its signature";
}

void print_text(const BuildReport& report, const std::string& output) {
  const Layout& layout = report.layout;
  std::string packs;
  if (is_packed(layout)) {
    packs =
        ", " + std::to_string(report.packs_rebuilt) + " of " + counted(layout.pack_count(), "pack");
  }
  std::printf("%u of %s rebuilt%s; %s\n", report.shards_rebuilt,
              counted(layout.shard_count, "shard").c_str(), packs.c_str(), news_of(report));
  std::printf("%s: %s, %u rows x %s (%s), epoch %s\n", output.c_str(), keys_of(report).c_str(),
              layout.row_count, counted(layout.column_count(), "column").c_str(),
              human_bytes(layout.matrix_bytes()).c_str(), report.epoch.c_str());
  if (report.signature) {
    std::printf("signed by %s as %s\n", encode_hex(report.signature->signer).c_str(),
                numbered(report.signature->sequence, report.signature->time).c_str());
  }
  if (layout.batch) {
    std::printf("every key is in %u of %s\n", kBucketChoices,
                counted(layout.bucket_count(), "bucket").c_str());
  }
  std::printf("a client downloads %s%s once an epoch, and a %s costs %s up and %s down\n",
              human_bytes(layout.hint_bytes()).c_str(), is_packed(layout) ? " of masks" : "",
              request_name(layout).c_str(), human_bytes(layout.query_bytes()).c_str(),
              human_bytes(layout.response_bytes()).c_str());
  if (is_packed(layout)) {
    std::printf("the server also keeps %s of packing tables\n",
                human_bytes(layout.packing_table_bytes()).c_str());
  }
}

// Comes before the work that takes long, so that an operator can stop the build.
void log_plan(const BuildReport& report) {
  const Layout& layout = report.layout;
  log_info(
      "read {} in {:.2f} s; layout {}: {} mode, {} x {} rows, query {} bits, response {} bits, {} "
      "{} bits, a look-up fails with probability below 2^{:.1f}",
      keys_of(report), report.seconds_reading + report.seconds_surveying, report.layout_reason,
      mode_name(layout.mode()), layout.shard_count, layout.row_count, layout.query_bits,
      layout.response_bits, is_packed(layout) ? "mask" : "hint", layout.hint_bits,
      layout.log2_failure());
  log_info("{}", security_line(*layout.lwe));
  if (layout.batch) {
    log_info("a request is for up to {}: {} of {}, with {} records of {}",
             counted(layout.batch->keys_per_request, "key"),
             counted(layout.bucket_count(), "bucket"),
             counted(layout.bucket_shard_count(), "shard"), layout.record_count(),
             counted(layout.key_count, "key"));
  }
  if (is_packed(layout)) {
    log_info("packed responses: the server will keep {} of packing tables and {} of matrix",
             human_bytes(layout.packing_table_bytes()), human_bytes(layout.matrix_bytes()));
  }
  if (report.survey.duplicates_dropped > 0) {
    log_info("pairs dropped because their key came twice: {}", report.survey.duplicates_dropped);
  }
  if (report.truncated_values > 0) log_info("values cut: {}", report.truncated_values);
  warn_of_skew(report);
  note_small_input(report);
}

void log_times(const BuildReport& report) {
  log_info("reading {:.2f} s, surveying {:.2f} s, filters {:.2f} s, {} {:.2f} s, in all {:.2f} s",
           report.seconds_reading, report.seconds_surveying, report.seconds_filters,
           is_packed(report.layout) ? "packs" : "hint", report.seconds_hint, report.seconds_total);
}

// All shards have as many rows as the fullest needs. The salt is public, so that a person who may
// add keys can choose them for one shard.
void warn_of_uneven_shards(const BuildReport& report) {
  const uint32_t shards = report.layout.shard_count;
  const uint64_t expected = expected_fullest_shard(report.layout.record_count(), shards);
  const auto chance = static_cast<double>(expected);
  const auto fullest = static_cast<double>(report.fullest_shard);
  // The limit is six standard deviations above the mean, and an excess that shows in the size.
  if (fullest < chance + 6 * std::sqrt(chance) || fullest < 1.25 * chance) return;
  log_warning(
      "the fullest of {} shards has {} {}, and would have about {} by chance: someone may have "
      "chosen keys to make the database larger; --fresh distributes them again, with another salt",
      shards, report.fullest_shard, report.layout.batch ? "records" : "keys", expected);
}

void warn_of_unclaimed_files(const BuildReport& report, const std::string& output) {
  if (report.unclaimed_files.empty()) return;
  log_warning(
      "{} in {} neither belong to the database nor are known to be a build's, and stay, such as "
      "{}; delete what is not needed",
      counted(report.unclaimed_files.size(), "file"), output, report.unclaimed_files.front());
}

BuildOptions options_of(const BuildCommand& command) {
  BuildOptions options;
  command.layout.apply_to(options);
  options.input = command.input.options(command.layout.index);
  if (command.value_room > command.input.input.value_bytes_max) {
    throw UsageError(
        "--value-room " + std::to_string(command.value_room) + " is more than --value-bytes-max " +
        std::to_string(command.input.input.value_bytes_max) + "; lower the one or raise the other");
  }
  options.value_room = command.value_room;
  options.drop_signature = command.drop_signature;
  options.fresh = command.fresh;
  options.allow_shrink = command.allow_shrink;
  options.allow_padding = command.allow_padding;
  options.engine = command.engine;
  options.thread_count = command.thread_count;
  options.on_planned = [asked = command.lookups->count() > 0](const BuildReport& report) {
    log_plan(report);
    warn_of_uneven_shards(report);
    if (!report.layout_kept || !asked) return;
    log_warning(
        "--lookups-per-client counts only for a new directory or with --fresh: the layout is kept");
  };
  return options;
}

// Buffers of one shard after the other are as large: giving their memory back to the system and
// taking it again, cleared, costs an eighth of the time of the filters.
void keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, 64 << 20);
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
}

// The fullest shard of a new database is an estimate, since its salt will be random.
void run_dry(const BuildCommand& command, const BuildOptions& options) {
  PlanQuestion question;
  const DryRun found = dry_run(command.input.open(command.layout.index), command.output, options);
  question.request = found.request;
  question.longest_value = found.survey.longest_value;
  question.levels_fixed = command.layout.levels.has_value();
  question.kept = found.kept;
  question.why_not_kept = found.why_not_kept;
  report_plan(question, command.json);
}

void run_build(const BuildCommand& command) {
  keep_freed_memory();
  BuildOptions options = options_of(command);  // its UsageError comes before any source
  if (command.dry_run) return run_dry(command, options);
  std::optional<SigningKey> signing_key;
  if (!command.signing_key.empty()) {
    options.signing_key = &signing_key.emplace(SigningKey::read(command.signing_key));
  }
  const auto sources = command.input.open(command.layout.index);
  std::vector<std::string> parts;
  if (options.mode != Mode::kHint) parts.push_back("tables");
  DeviceEnd end;
  const BuildReport report = end_if_device_lost(end, [&] {
    const CheckedEngines engines =
        make_checked_engines({options.engine, options.thread_count, parts}, command.limit, end);
    options.engines = &engines.get();
    return build_database(sources, command.output, options);
  });
  log_times(report);
  warn_of_unclaimed_files(report, command.output);
  if (command.json) {
    print_json(report);
  } else {
    print_text(report, command.output);
  }
}

constexpr const char* kBuildExample =
    "Example:\n  blindfuse build words.tsv --output words.blindfuse";

}  // namespace

void add_build_command(CLI::App& program) {
  auto options = std::make_shared<BuildCommand>();
  CLI::App* command = program.add_subcommand(
      "build",
      "Make a database directory from files of keys and values, or bring one up to date. An update "
      "builds only the shards whose keys or values changed.");
  command->footer(kBuildExample);
  options->input.add_files_to(*command)->required();
  command->option_defaults()->group("Output");
  command
      ->add_option("--output", options->output,
                   "Database directory: an existing database, an empty directory, or a new one in "
                   "an existing directory")
      ->required()
      ->type_name("DIR");
  CLI::Option* sign = command->add_option(
      "--sign", options->signing_key,
      "Sign the manifest with the private key in this file, which keygen makes. A directory that "
      "is signed is built again only with --sign or --unsigned");
  sign->type_name("FILE");
  command
      ->add_flag("--unsigned", options->drop_signature,
                 "Drop the signature of a directory that is signed")
      ->excludes(sign);
  options->input.add_to(*command);
  options->layout.add_to(*command);
  command->option_defaults()->group("Options");
  options->lookups = command->get_option("--lookups-per-client");
  command->add_flag("--fresh", options->fresh,
                    "Build everything again, with a new salt, seed and layout, whatever was there "
                    "before. Clients download everything again");
  command->add_flag("--allow-shrink", options->allow_shrink,
                    "Build even if more than half of the keys are gone");
  command->add_flag("--dry-run", options->dry_run,
                    "Read the input, and recommend a layout as plan does. Nothing is built");
  command
      ->add_option(
          "--engine", options->engine,
          "Engine: auto, cpu, cpu:KERNEL, cuda, cuda:KERNEL; the last two also with @DEVICE")
      ->type_name("ENGINE")
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print the report as JSON");
  command->option_defaults()->group("Other options" + std::string(kAdvanced));
  command
      ->add_option("--value-room", options->value_room,
                   "Room for values of this length in every record, even if all are shorter now. A "
                   "longer value then needs no new layout")
      ->type_name("BYTES")
      ->transform(byte_units())
      ->check(CLI::Range(0u, kValueBytesMax))
      ->capture_default_str();
  command->add_flag("--allow-padding", options->allow_padding,
                    "Build even if the room for the longest value makes the database more than ten "
                    "times as large as the input, and larger than 10 MB");
  command
      ->add_option("--threads", options->thread_count,
                   "Number of threads; 0: one for each processor that the process may use, within "
                   "the CPU limit of its control group")
      ->check(CLI::Range(0u, 1024u))
      ->capture_default_str();
  options->limit.add_to(*command);
  command->callback([options] { run_build(*options); });
}

}  // namespace blindfuse
