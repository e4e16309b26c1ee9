// Key-value pairs from newline-delimited JSON: one object a line.
#pragma once

#include <string>

#include "host/ingest/key_value_source.h"
#include "host/ingest/line_reader.h"
#include "host/ingest/text_encoding.h"

namespace blindfuse {

// Key and value are string members of the object. Other members are skipped, and so are blank
// lines. Errors are a line that is not JSON (RFC 8259) or not an object, a wanted member that is
// missing, not a string or there twice, and values nested deeper than kMaxDepth.
class NdjsonSource : public KeyValueSource {
 public:
  static constexpr size_t kMaxDepth = 64;

  NdjsonSource(LineReader lines, const SourceOptions& options);

  bool next(KeyValuePair& pair) override;
  const std::string& name() const override { return lines_.name(); }
  std::string_view place_unit() const override { return "line"; }
  uint64_t bytes_read() const override { return lines_.bytes_read(); }
  std::optional<uint64_t> bytes_total() const override { return lines_.bytes_total(); }

 private:
  bool next_object_line(Line& line);

  LineReader lines_;
  bool index_;
  std::string key_field_;
  std::string value_field_;
  FieldDecoder key_;
  FieldDecoder value_;
  std::string key_text_;
  std::string value_text_;
};

}  // namespace blindfuse
