#include "host/ingest/tsv_source.h"

#include <utility>

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

}  // namespace blindfuse
