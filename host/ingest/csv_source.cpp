#include "host/ingest/csv_source.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "host/ingest/key_value_source.h"

namespace blindfuse {

TsvSource::TsvSource(LineReader lines, const SourceOptions& options)
    : lines_(std::move(lines)),
      index_(options.index),
      key_(key_decoder(options.key_encoding)),
      value_(value_decoder(options.value_encoding)) {}

bool TsvSource::next(KeyValuePair& pair) {
  Line line;
  do {
    if (!lines_.next(line)) return false;
  } while (line.text.empty() && !index_);
  const InputPlace place{name(), place_unit(), line.number};
  if (line.text.find('\r') != std::string_view::npos) {
    fail_input(place,
               "a carriage return without a line feed; expected lines that end in LF or CRLF");
  }
  pair.place = line.number;
  if (index_) {
    pair.key = {};
    pair.value = value_.decode(line.text, place);
    return true;
  }

  const size_t tab = line.text.find('\t');
  if (tab == std::string_view::npos) fail_input(place, "no tab; expected KEY<tab>VALUE");
  const std::string_view value = line.text.substr(tab + 1);
  if (value.find('\t') != std::string_view::npos) {
    fail_input(place, "a second tab; expected KEY<tab>VALUE with exactly one tab");
  }
  pair.key = key_.decode(line.text.substr(0, tab), place);
  pair.value = value_.decode(value, place);
  return true;
}

CsvReader::CsvReader(LineReader lines) : lines_(std::move(lines)) {}

bool CsvReader::next() {
  if (!lines_.next(line_)) return false;
  line_number_ = line_.number;
  fields_.clear();
  // Most rows have no quote; their fields are views of the line.
  if (line_.text.find('"') == std::string_view::npos) {
    read_unquoted_row();
  } else {
    read_quoted_row();
  }
  return true;
}

void CsvReader::read_unquoted_row() {
  check_plain(line_.text);
  std::string_view rest = line_.text;
  for (;;) {
    const size_t comma = rest.find(',');
    fields_.push_back(rest.substr(0, comma));
    check_field_count(fields_.size());
    if (comma == std::string_view::npos) return;
    rest.remove_prefix(comma + 1);
  }
}

void CsvReader::read_quoted_row() {
  text_.clear();
  ends_.clear();
  size_t at = 0;
  for (;;) {
    const bool is_quoted = at < line_.text.size() && line_.text[at] == '"';
    at = is_quoted ? read_quoted_field(at) : read_plain_field(at);
    ends_.push_back(text_.size());
    check_field_count(ends_.size());
    if (at == line_.text.size()) break;
    ++at;
  }
  // text_ does not move from here on.
  size_t begin = 0;
  for (const size_t end : ends_) {
    fields_.push_back(std::string_view(text_).substr(begin, end - begin));
    begin = end;
  }
}

size_t CsvReader::read_plain_field(size_t at) {
  const std::string_view rest = line_.text.substr(at);
  const std::string_view field = rest.substr(0, rest.find(','));
  check_plain(field);
  text_ += field;
  return at + field.size();
}

size_t CsvReader::read_quoted_field(size_t at) {
  const uint64_t opened_on = line_.number;
  ++at;
  for (;;) {
    const size_t quote = line_.text.find('"', at);
    text_ += line_.text.substr(at, quote - at);  // all the rest when there is no quote
    if (quote == std::string_view::npos) {
      text_ += line_.terminator;
      read_line_within_quotes(opened_on);
      at = 0;
    } else if (line_.text.substr(quote + 1).starts_with('"')) {
      text_ += '"';
      at = quote + 2;
    } else {
      at = quote + 1;
      break;
    }
  }
  if (at < line_.text.size() && line_.text[at] != ',') {
    fail(line_.number,
         "text after a closing quote; expected a comma or the end of the line, and "
         "quotes within a quoted field doubled");
  }
  return at;
}

void CsvReader::read_line_within_quotes(uint64_t opened_on) {
  constexpr std::string_view kExpected = "; expected a closing quote";
  if (!lines_.next(line_)) {
    fail(opened_on, "a quote opened here is never closed" + std::string(kExpected));
  }
  if (text_.size() + line_.text.size() > lines_.max_line_bytes()) {
    fail(opened_on, "a quote opened here is still open when the row reaches the limit of " +
                        std::to_string(lines_.max_line_bytes()) + " bytes" +
                        std::string(kExpected));
  }
}

void CsvReader::check_plain(std::string_view field) const {
  if (field.find('"') != std::string_view::npos) {
    fail(line_.number,
         "a quote in an unquoted field; expected the whole field in quotes, and "
         "quotes within it doubled");
  }
  if (field.find('\r') != std::string_view::npos) {
    fail(line_.number,
         "a carriage return without a line feed; expected lines that end in LF or "
         "CRLF, or the field in quotes");
  }
}

void CsvReader::check_field_count(size_t count) const {
  if (count <= kMaxFields) return;
  fail(line_number_, "more fields than the limit; expected at most " + std::to_string(kMaxFields));
}

void CsvReader::fail(uint64_t line_number, const std::string& problem) const {
  fail_input(InputPlace{lines_.name(), "line", line_number}, problem);
}

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
