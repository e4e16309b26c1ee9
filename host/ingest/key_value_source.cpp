#include "host/ingest/key_value_source.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "host/ingest/byte_source.h"
#include "host/ingest/csv_source.h"
#include "host/ingest/line_reader.h"
#include "host/ingest/ndjson_source.h"
#include "host/ingest/sqlite_source.h"
#include "src/base/errors.h"

namespace blindfuse {

namespace {

constexpr std::string_view kStandardInputPath = "-";

constexpr std::array<std::pair<std::string_view, SourceFormat>, 7> kExtensions = {{
    {".tsv", SourceFormat::kTsv},
    {".csv", SourceFormat::kCsv},
    {".ndjson", SourceFormat::kNdjson},
    {".jsonl", SourceFormat::kNdjson},
    {".sqlite", SourceFormat::kSqlite},
    {".sqlite3", SourceFormat::kSqlite},
    {".db", SourceFormat::kSqlite},
}};

char to_lower(char c) { return 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

SourceFormat guess_format(const std::string& path) {
  std::string extension = std::filesystem::path(path).extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(), to_lower);
  for (const auto& [known, format] : kExtensions) {
    if (extension == known) return format;
  }
  refuse_compressed_name(path);
  fail_input(path, "the name does not tell the format; expected --format tsv|csv|ndjson|sqlite");
}

std::unique_ptr<KeyValueSource> read_text(std::unique_ptr<ByteSource> bytes, SourceFormat format,
                                          const SourceOptions& options) {
  LineReader lines(std::move(bytes));
  switch (format) {
    case SourceFormat::kTsv:
      return std::make_unique<TsvSource>(std::move(lines), options);
    case SourceFormat::kCsv:
      return std::make_unique<CsvSource>(std::move(lines), options);
    case SourceFormat::kNdjson:
      return std::make_unique<NdjsonSource>(std::move(lines), options);
    case SourceFormat::kSqlite:
      break;
  }
  invariant(false, "a text format is one of three");
  return nullptr;
}

}  // namespace

std::unique_ptr<KeyValueSource> open_source(const std::string& path, const SourceOptions& options) {
  if (path == kStandardInputPath) {
    if (!options.format || *options.format == SourceFormat::kSqlite) {
      fail_input("standard input", std::string(options.format ? "SQLite needs a file"
                                                              : "no name to tell the format by") +
                                       "; expected --format tsv|csv|ndjson");
    }
    return read_text(standard_input(), *options.format, options);
  }
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    fail_input(path, "Is a directory; expected a readable file");
  }
  const SourceFormat format = options.format ? *options.format : guess_format(path);
  if (format != SourceFormat::kSqlite) return read_text(open_file(path), format, options);
  if (options.sqlite_query.empty()) {
    fail_input(path, "no query for an SQLite database; expected --sqlite-query 'SELECT ...'");
  }
  return std::make_unique<SqliteSource>(path, options);
}

void fail_input(std::string_view name, std::string_view problem) {
  // A name is not cut: the operator typed it, and it tells the inputs apart.
  throw InputError(printable(name, std::string_view::npos) + ": " + std::string(problem));
}

void fail_input(const InputPlace& place, std::string_view problem) {
  fail_input(
      std::string(place.name) + ", " + std::string(place.unit) + ' ' + std::to_string(place.number),
      problem);
}

}  // namespace blindfuse
