// Key-value pairs from a query on an SQLite file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "host/ingest/key_value_source.h"
#include "host/ingest/text_encoding.h"

struct sqlite3;
struct sqlite3_stmt;

namespace blindfuse {

// The file is opened read-only, and left as it is; only where it has a write-ahead log, SQLite may
// put a file for shared memory next to it. The query and the file's views and generated columns may
// read and no more. The query is one statement that only reads and returns two columns, key and
// value. For an index database it returns one column, the value, and should have an ORDER BY. TEXT
// is decoded as the options say, BLOB is taken as its bytes, INTEGER as its decimal text. NULL and
// REAL are errors.
class SqliteSource : public KeyValueSource {
 public:
  // The limit of one text or blob that SQLite reads.
  static constexpr size_t kMaxFieldBytes = size_t{64} << 20;

  // Opens the file and prepares options.sqlite_query. Throws InputError if either fails.
  SqliteSource(const std::string& path, const SourceOptions& options);
  ~SqliteSource() override;
  SqliteSource(const SqliteSource&) = delete;
  SqliteSource& operator=(const SqliteSource&) = delete;

  // Throws InputError, or ResourceError if memory is short.
  bool next(KeyValuePair& pair) override;
  const std::string& name() const override { return name_; }
  std::string_view place_unit() const override { return "row"; }
  uint64_t bytes_read() const override { return bytes_read_; }  // of keys and values
  std::optional<uint64_t> bytes_total() const override { return std::nullopt; }

 private:
  struct DatabaseCloser {
    void operator()(sqlite3* database) const;
  };
  struct StatementFinalizer {
    void operator()(sqlite3_stmt* statement) const;
  };
  using Statement = std::unique_ptr<sqlite3_stmt, StatementFinalizer>;

  void open_database();
  void open(const std::string& name, int flags);
  bool is_whole_without_log() const;
  void prepare_query(const std::string& query);
  // Prepares the first statement of `sql`, and moves `sql` on to the text after it. Nothing if
  // there are only blanks and comments.
  Statement prepare(const char*& sql);
  void check_statement() const;
  // Throws for a status that is the fault of the file, and not of the query.
  void check_status(int status) const;
  bool step();
  std::string_view read_field(int column, FieldDecoder& decoder);
  InputPlace place() const { return {name_, place_unit(), rows_read_}; }

  std::string name_;
  bool index_;
  FieldDecoder key_;
  FieldDecoder value_;
  std::unique_ptr<sqlite3, DatabaseCloser> database_;
  Statement statement_;  // after database_, so that it goes first
  // The time when the file was last written, where nothing else tells that it was written again.
  std::optional<std::filesystem::file_time_type> written_;
  bool at_end_ = false;
  uint64_t rows_read_ = 0;
  uint64_t bytes_read_ = 0;
};

}  // namespace blindfuse
