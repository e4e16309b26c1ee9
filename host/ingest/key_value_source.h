// The operator's key-value map, as a stream of pairs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/program/printable.h"

namespace blindfuse {

// A pair. The views stay valid until the next call of next().
struct KeyValuePair {
  std::string_view key;  // empty for a source of an index database
  std::string_view value;
  uint64_t place =
      0;  // 1-based: the line where the pair begins in a text, the row of an SQL result
};

class KeyValueSource {
 public:
  virtual ~KeyValueSource() = default;

  // Reads the next pair. Returns false at the end. Throws InputError, which names source and place,
  // for a pair that cannot be read. After that the source can only be destroyed.
  virtual bool next(KeyValuePair& pair) = 0;

  // The name of this source for people: a path, or "standard input".
  virtual const std::string& name() const = 0;

  // The unit of `place`: "line" or "row".
  virtual std::string_view place_unit() const = 0;

  // The bytes of input that were read so far, and the number of all bytes if it is known; for
  // progress.
  virtual uint64_t bytes_read() const = 0;
  virtual std::optional<uint64_t> bytes_total() const = 0;
};

enum class TextEncoding { kUtf8, kHex, kBase64 };
enum class SourceFormat { kTsv, kCsv, kNdjson, kSqlite };

struct SourceOptions {
  std::optional<SourceFormat>
      format;  // nothing: by the file's name (.tsv .csv .ndjson .jsonl .sqlite .sqlite3 .db)
  bool index = false;              // pairs have no key: the position in the input is the key
  std::string key_column = "key";  // in the header of CSV, or a member of NDJSON
  std::string value_column = "value";
  std::string
      sqlite_query;  // must give two columns, key and value; one column for an index database
  TextEncoding key_encoding = TextEncoding::kUtf8;
  TextEncoding value_encoding = TextEncoding::kUtf8;
};

// Opens `path` ("-" is standard input, for text formats only). Throws InputError if it cannot be
// opened, if its format cannot be determined, or if a required option is missing.
std::unique_ptr<KeyValueSource> open_source(const std::string& path, const SourceOptions& options);

// A line of a text, or a row of an SQL result.
struct InputPlace {
  std::string_view name;  // of the source
  std::string_view unit;  // "line" or "row"
  uint64_t number = 0;    // 1-based
};

// Throw InputError, with a message in one line:
//
//   words.tsv, line 17: no tab; expected KEY<tab>VALUE
//
// `problem` is "<what is wrong>; <what would be right>". It contains no control characters, and at
// most kExcerptBytes bytes of the data.
[[noreturn]] void fail_input(std::string_view name, std::string_view problem);
[[noreturn]] void fail_input(const InputPlace& place, std::string_view problem);

}  // namespace blindfuse
