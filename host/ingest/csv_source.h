// Key-value pairs from comma-separated text with a header.
#pragma once

#include <cstddef>
#include <string>

#include "host/ingest/csv_reader.h"
#include "host/ingest/key_value_source.h"
#include "host/ingest/text_encoding.h"

namespace blindfuse {

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
