// Key-value pairs from tab-separated text: KEY<tab>VALUE, one pair a line.
#pragma once

#include "host/ingest/key_value_source.h"
#include "host/ingest/line_reader.h"
#include "host/ingest/text_encoding.h"

namespace blindfuse {

// There is no header, and there are no quotes or escape sequences. A backslash is a backslash. A
// key or value with a tab or a line end needs another format or encoding. Every line has exactly
// one tab. A line without one or with more is an error, and so is a \r that does not end a line.
// Empty lines are skipped. For an index database the whole line with its tabs is the value, and an
// empty line is an empty value.
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

}  // namespace blindfuse
