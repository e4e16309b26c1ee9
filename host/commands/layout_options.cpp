#include "host/commands/layout_options.h"

#include <array>
#include <map>
#include <vector>

#include "src/arithmetic/layout.h"
#include "src/base/errors.h"
#include "src/program/command_line.h"
#include "src/program/help_formatter.h"

namespace blindfuse {

namespace {

void add_source_options(CLI::App& command, SourceOptions& source) {
  add_choice(command, "--format", source.format,
             {{"tsv", SourceFormat::kTsv},
              {"csv", SourceFormat::kCsv},
              {"ndjson", SourceFormat::kNdjson},
              {"sqlite", SourceFormat::kSqlite}},
             "Format of the inputs (default: by the file's name)");
  command
      .add_option("--key-column", source.key_column,
                  "Name of the key's column in CSV, and of its member in NDJSON")
      ->type_name("NAME")
      ->capture_default_str();
  command
      .add_option("--value-column", source.value_column,
                  "Name of the value's column in CSV, and of its member in NDJSON")
      ->type_name("NAME")
      ->capture_default_str();
  // These two go with 0.5.0.
  add_former_name(command, "--key-field", "--key-column");
  add_former_name(command, "--value-field", "--value-column");
  command
      .add_option("--sqlite-query", source.sqlite_query,
                  "SQLite: a SELECT statement with two columns, key and value")
      ->type_name("SQL");
  const std::map<std::string, TextEncoding> encodings = {{"utf8", TextEncoding::kUtf8},
                                                         {"hex", TextEncoding::kHex},
                                                         {"base64", TextEncoding::kBase64}};
  add_choice(command, "--key-encoding", source.key_encoding, encodings,
             "How keys are written (default: utf8)");
  add_choice(command, "--value-encoding", source.value_encoding, encodings,
             "How values are written (default: utf8)");
}

}  // namespace

CLI::Option* InputChoices::add_files_to(CLI::App& command) {
  return command.add_option(
      "input", files,
      "Files of pairs, read as one: .tsv (KEY<tab>VALUE, no header), .csv (RFC 4180, with a "
      "header), .ndjson (an object a line), .sqlite, or - for standard input");
}

void InputChoices::add_to(CLI::App& command) {
  command.option_defaults()->group("Input");
  add_source_options(command, source);
  add_choice(
      command, "--on-duplicate", input.on_duplicate,
      {{"error", DuplicatePolicy::kError},
       {"first", DuplicatePolicy::kFirst},
       {"last", DuplicatePolicy::kLast}},
      "What to do when a key comes twice: fail, or keep its first or last value (default: error)");
  command.option_defaults()->group("Input" + std::string(kAdvanced));
  command.add_option("--value-bytes-max", input.value_bytes_max, "Longest value allowed, in bytes")
      ->type_name("BYTES")
      ->transform(byte_units())
      ->check(CLI::Range(0u, kValueBytesMax))
      ->capture_default_str();
  add_choice(command, "--long-values", input.long_values,
             {{"error", LongValues::kError}, {"truncate", LongValues::kTruncate}},
             "What to do with a longer value (default: error)");
  command.option_defaults()->group("Options");
}

InputOptions InputChoices::options(bool is_index) const {
  InputOptions all = input;
  all.kind = is_index ? DatabaseKind::kIndex : DatabaseKind::kKeyword;
  all.values_are_text = source.value_encoding == TextEncoding::kUtf8;
  all.key_encoding = source.key_encoding;
  return all;
}

std::vector<std::unique_ptr<KeyValueSource>> InputChoices::open(bool is_index) const {
  SourceOptions options = source;
  options.index = is_index;
  std::vector<std::unique_ptr<KeyValueSource>> sources;
  for (const std::string& file : files) sources.push_back(open_source(file, options));
  return sources;
}

namespace {

constexpr std::array kModes = {Mode::kHint, Mode::kPacked};

std::string sets_for(Mode mode) {
  std::string names;
  for (const LweParams& set : lwe_params()) {
    if (set.mode == mode) names += (names.empty() ? "" : ", ") + std::string(set.name);
  }
  return names;
}

// "lwe-1774 for hint, ring-2048 for packed"
std::string defaults() {
  std::string text;
  for (const Mode mode : kModes) {
    text += (text.empty() ? "" : ", ") + std::string(default_lwe_params(mode).name) + " for " +
            std::string(mode_name(mode));
  }
  return text;
}

}  // namespace

void LayoutOptions::add_to(CLI::App& command) {
  command.option_defaults()->group("Layout and security");
  command.add_flag("--index", index,
                   "Make a database whose keys are numbers: the position in the input, from 0");
  command
      .add_option("--lookups-per-client", lookups_per_client,
                  "Expected look-ups of a client in one epoch. A large number makes queries small, "
                  "a small number makes the hint small")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1'000'000'000}))
      ->capture_default_str();
  command
      .add_option(
          "--mode", mode_choice,
          "hint: clients download the hints of all shards once an epoch; look-ups are smaller; "
          "secrecy rests on LWE. packed: clients download masks instead; each query carries a "
          "packing key of 24 KiB; secrecy rests on ring LWE and circular security. auto: the mode "
          "that costs a client fewer bytes, but packed only if its tables take at most 256 MiB or "
          "no more than the matrix")
      ->check(CLI::IsMember(std::vector<std::string>{"auto", "hint", "packed"}))
      ->capture_default_str();
  command
      .add_option(
          "--keys-per-request", keys_per_request,
          "Keys that a client looks up with one request. A key then costs fewer bytes and less "
          "time of the server, which keeps three copies of every record. A request for one key "
          "costs as much as a full one. 2 and more imply --mode packed, and one level. Without "
          "this option, a new database is for 1 key, and an update keeps the number")
      ->check(CLI::Range(1u, kKeysPerRequestMax));
  add_advanced_to(command);
  command.option_defaults()->group("Options");
  add_removed_option(
      command, "--prefer",
      "`blindfuse plan` shows the options of layouts with fewer bytes, more look-ups "
      "or less memory: build with those");
  add_removed_option(command, "--rates",
                     "times are those of the machine that plans: run `blindfuse plan` on the one "
                     "that will serve");
  add_removed_option(command, "--calibrate",
                     "`blindfuse plan` measures the rates of the machine each time: leave it out");
}

void LayoutOptions::add_advanced_to(CLI::App& command) {
  std::vector<std::string> names;
  for (const LweParams& set : lwe_params()) names.emplace_back(set.name);
  command.option_defaults()->group("Layout and security" + std::string(kAdvanced));
  command.add_option("--shards", shard_count, "Number of shards (default: chosen from the size)")
      ->check(CLI::Range(1u, kShardCountMax));
  command
      .add_option(
          "--levels", levels,
          "Levels of packed responses. 2: a response has only the words of a few shards, and "
          "the server takes longer for each query. It implies --mode packed (default: 1)")
      ->check(CLI::Range(1u, 2u));
  command.add_flag("--short-key", short_key,
                   "With --levels 2: each query carries a second key of 24 KiB, and the second "
                   "level takes fewer key switches. For records of up to 512 bytes");
  command
      .add_option(
          "--arity", arity,
          "Rows of a key in the filter. 4 gives a smaller matrix and a longer build (default: 3)")
      ->check(CLI::IsMember({3u, 4u}));
  command
      .add_option("--params", params,
                  "Parameter set. It fixes the mode, too (default: " + defaults() + ")")
      ->check(CLI::IsMember(names));
  command
      .add_option(
          "--digest-bytes", digest_bytes,
          "Bytes of the digest of a key in its record. An absent key is reported as present "
          "with probability 2^-(8 N) (default: 8)")
      ->check(CLI::Range(1u, kDigestBytesMax));
  command.add_option("--query-bits", query_bits, "Bits sent of each word of a query")
      ->check(CLI::Range(24u, 32u));
  command.add_option("--response-bits", response_bits, "Bits sent of each word of a response")
      ->check(CLI::Range(9u, 32u));
  command.add_option("--hint-bits", hint_bits, "Bits kept of each word of a hint or mask")
      ->check(CLI::Range(16u, 32u));
}

std::optional<Mode> LayoutOptions::mode() const {
  std::optional<Mode> wanted;
  for (const Mode each : kModes) {
    if (mode_choice == mode_name(each)) wanted = each;
  }
  if (const LweParams* set = lwe()) {
    if (wanted && *wanted != set->mode) {
      throw UsageError("--mode " + mode_choice + " and --params " + params +
                       " contradict each other: " + params + " is for --mode " +
                       std::string(mode_name(set->mode)) + ", and --mode " + mode_choice +
                       " takes " + sets_for(*wanted));
    }
    wanted = set->mode;
  }
  if (batch()) {
    check_keys_per_request();
    return Mode::kPacked;
  }
  if (short_key && levels != 2u) {
    throw UsageError(
        "--short-key is for packed responses with two levels; add --levels 2, or leave "
        "--short-key out");
  }
  if (levels != 2u) return wanted;
  if (wanted == Mode::kHint) {
    throw UsageError("--levels 2 is for packed responses, and " +
                     (params.empty() ? "--mode hint" : "--params " + params) +
                     " has none; take --mode packed" + (params.empty() ? "" : " without --params") +
                     ", or leave --levels out");
  }
  return Mode::kPacked;
}

const LweParams* LayoutOptions::lwe() const {
  return params.empty() ? nullptr : find_lwe_params(params);
}

// Called after the set has been checked against the mode.
void LayoutOptions::check_keys_per_request() const {
  const LweParams* set = lwe();
  if (index) {
    throw UsageError(
        "--keys-per-request is for keys that are byte strings, and --index makes a database of "
        "numbers; leave the one or the other out");
  }
  if (levels == 2u || short_key) {
    throw UsageError("--keys-per-request is for packed responses of one level; leave " +
                     std::string(levels == 2u ? "--levels 2" : "") +
                     (levels == 2u && short_key ? " and " : "") + (short_key ? "--short-key" : "") +
                     " out, or --keys-per-request");
  }
  if (set != nullptr && set->mode == Mode::kHint) {
    throw UsageError("--keys-per-request is for packed responses, and --params " + params +
                     " has none; leave --params out or take " + sets_for(Mode::kPacked) +
                     ", or leave --keys-per-request out");
  }
  if (mode_choice == mode_name(Mode::kHint)) {
    throw UsageError(
        "--keys-per-request is for packed responses, and --mode hint has none; take --mode packed, "
        "or leave --keys-per-request out");
  }
}

std::optional<BatchCode> LayoutOptions::batch() const {
  if (keys_per_request.value_or(1) < kKeysPerRequestMin) return std::nullopt;
  return BatchCode{*keys_per_request, usual_bucket_count(*keys_per_request)};
}

void LayoutOptions::apply_to(BuildOptions& options) const {
  options.mode = mode();
  options.lwe = lwe();
  options.shard_count = shard_count;
  options.arity = arity;
  options.digest_bytes = digest_bytes;
  options.query_bits = query_bits;
  options.response_bits = response_bits;
  options.hint_bits = hint_bits;
  options.levels = levels;
  options.short_key = short_key;
  options.batch = batch();
  options.one_key = keys_per_request == 1u;
  options.lookups_per_client = lookups_per_client;
}

}  // namespace blindfuse
