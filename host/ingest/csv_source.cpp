#include "host/ingest/csv_source.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace blindfuse {

namespace {

std::string field_count_text(size_t count) {
  return std::to_string(count) + (count == 1 ? " field" : " fields");
}

// The names that fit one error message: '"id", "word", ...'.
std::string list_columns(const std::vector<std::string_view>& columns) {
  std::string list;
  for (const std::string_view column : columns) {
    const std::string name = (list.empty() ? "" : ", ") + quoted(column, kExcerptBytes / 2);
    if (list.size() + name.size() > kExcerptBytes) return list + ", ...";
    list += name;
  }
  return list;
}

}  // namespace

CsvSource::CsvSource(LineReader lines, const SourceOptions& options)
    : rows_(std::move(lines)),
      index_(options.index),
      key_(key_decoder(options.key_encoding)),
      value_(value_decoder(options.value_encoding)) {
  if (!rows_.next()) fail_input(name(), "no header; expected a first line that names the columns");
  column_count_ = rows_.fields().size();
  if (!index_) key_column_ = find_column(options.key_column, "--key-column");
  value_column_ = find_column(options.value_column, "--value-column");
}

bool CsvSource::next(KeyValuePair& pair) {
  do {
    if (!rows_.next()) return false;
  } while (rows_.is_blank() && column_count_ != 1);
  const std::vector<std::string_view>& fields = rows_.fields();
  if (fields.size() != column_count_) {
    fail_input(place(), field_count_text(fields.size()) + "; expected " +
                            field_count_text(column_count_) + " as in the header");
  }
  pair.place = rows_.line_number();
  pair.key = index_ ? std::string_view() : key_.decode(fields[key_column_], place());
  pair.value = value_.decode(fields[value_column_], place());
  return true;
}

size_t CsvSource::find_column(std::string_view wanted, std::string_view option) const {
  const std::vector<std::string_view>& columns = rows_.fields();
  const auto found = std::find(columns.begin(), columns.end(), wanted);
  if (found == columns.end()) {
    fail_input(place(), "no column " + quoted(wanted) + "; the columns are " +
                            list_columns(columns) + "; choose one with " + std::string(option));
  }
  if (std::find(found + 1, columns.end(), wanted) != columns.end()) {
    fail_input(place(), "more than one column " + quoted(wanted) + "; expected exactly one");
  }
  return static_cast<size_t>(found - columns.begin());
}

}  // namespace blindfuse
