#include "host/commands/input_options.h"

#include <map>

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

}  // namespace blindfuse
