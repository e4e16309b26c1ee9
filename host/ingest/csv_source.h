// Key-value pairs from text in rows: tab-separated, or comma-separated with a header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "host/ingest/key_value_source.h"
#include "host/ingest/line_reader.h"
#include "host/ingest/text_encoding.h"

namespace blindfuse {

// Tab-separated text: KEY<tab>VALUE, one pair a line. There is no header, and there are no quotes
// or escape sequences. A backslash is a backslash. A key or value with a tab or a line end needs
// another format or encoding. Every line has exactly one tab. A line without one or with more is an
// error, and so is a \r that does not end a line. Empty lines are skipped. For an index database
// the whole line with its tabs is the value, and an empty line is an empty value.
class TsvSource : public KeyValueSource {
 public:
  TsvSource(LineReader lines, const SourceOptions& options);

  bool next(KeyValuePair& pair) override;
  const std::string& name() const override { return lines_.name(); }
  std::string_view place_unit() const override { return "line"; }
  uint64_t bytes_read() const override { return lines_.bytes_read(); }
  std::optional<uint64_t> bytes_total() const override { return lines_.bytes_total(); }

 private:
  LineReader lines_;
  bool index_;
  FieldDecoder key_;
  FieldDecoder value_;
};

// Rows of comma-separated text (RFC 4180). Fields are separated by commas, rows by \n or \r\n. A
// field may be quoted. It may then hold commas, line ends (which are kept as they are) and doubled
// quotes. Spaces belong to the field. Errors are a quote in an unquoted field, text after a closing
// quote, a quote without a closing one, and a \r that does not end a line. Memory is bounded by
// kMaxFields and by the line limit, which also holds for a row.
class CsvReader {
 public:
  static constexpr size_t kMaxFields = 65'536;  // in a row

  explicit CsvReader(LineReader lines);

  // Reads the next row. Returns false at the end. Throws InputError, which names the line.
  bool next();

  // The fields of the row that was read last, at least one. Valid until the next call of next().
  const std::vector<std::string_view>& fields() const { return fields_; }

  // True if the row that was read last is an empty line, which is one empty field.
  bool is_blank() const { return line_.text.empty(); }

  // The line where the row that was read last begins.
  uint64_t line_number() const { return line_number_; }

  const LineReader& lines() const { return lines_; }

 private:
  void read_unquoted_row();
  void read_quoted_row();

  // Append one field that begins at `at` to text_ and return where it ends in line_: at a comma or
  // at the end of the line. Reading a quoted field may move line_ on.
  size_t read_plain_field(size_t at);
  size_t read_quoted_field(size_t at);
  void read_line_within_quotes(uint64_t opened_on);

  void check_plain(std::string_view field) const;
  void check_field_count(size_t count) const;
  [[noreturn]] void fail(uint64_t line_number, const std::string& problem) const;

  LineReader lines_;
  Line line_;
  uint64_t line_number_ = 0;
  std::string text_;          // of a row with quotes: its fields, without quotes and commas,
  std::vector<size_t> ends_;  // and where each ends
  std::vector<std::string_view> fields_;
};

// The first row names the columns. The columns of key and value are found by name, and every other
// row has as many fields as the header. Empty lines are skipped, except where there is one column:
// there they are empty values. A row's place is the line where it begins.
class CsvSource : public KeyValueSource {
 public:
  // Reads the header. Throws InputError if there is none, or if it does not name each wanted column
  // exactly once.
  CsvSource(LineReader lines, const SourceOptions& options);

  bool next(KeyValuePair& pair) override;
  const std::string& name() const override { return rows_.lines().name(); }
  std::string_view place_unit() const override { return "line"; }
  uint64_t bytes_read() const override { return rows_.lines().bytes_read(); }
  std::optional<uint64_t> bytes_total() const override { return rows_.lines().bytes_total(); }

 private:
  // The index of the column that the header, the row that was read last, calls `wanted`. `option`
  // is the program's option that names another column.
  size_t find_column(std::string_view wanted, std::string_view option) const;
  InputPlace place() const { return {name(), place_unit(), rows_.line_number()}; }

  CsvReader rows_;
  bool index_;
  FieldDecoder key_;
  FieldDecoder value_;
  size_t column_count_ = 0;
  size_t key_column_ = 0;  // without a meaning for an index database
  size_t value_column_ = 0;
};

}  // namespace blindfuse
