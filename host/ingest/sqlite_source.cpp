#include "host/ingest/sqlite_source.h"

#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <initializer_list>
#include <system_error>
#include <utility>

#include "host/ingest/key_value_source.h"
#include "src/base/errors.h"

namespace blindfuse {

namespace {

constexpr std::string_view kOneStatement = "; expected one SELECT statement";

// SQLite's own message for these is only "unable to open database file". Nothing is opened here: to
// close a descriptor of the file would drop the locks that SQLite holds on it in this process.
void check_file(const std::string& path) {
  struct stat status = {};
  int error = 0;
  if (::access(path.c_str(), R_OK) != 0 || ::stat(path.c_str(), &status) != 0) {
    error = errno;
  } else if (S_ISDIR(status.st_mode)) {
    error = EISDIR;
  }
  if (error != 0) {
    fail_input(path, std::generic_category().message(error) + "; expected a readable file");
  }
  if (!S_ISREG(status.st_mode)) fail_input(path, "not a file; expected an SQLite database");
}

// Permits what a query needs, and denies the rest: views and columns of the file may come from
// elsewhere.
int authorize(void*, int action, const char* name, const char* function, const char*, const char*) {
  const auto is_one_of = [](const char* text, std::initializer_list<const char*> names) {
    return std::ranges::any_of(
        names, [&](const char* other) { return sqlite3_stricmp(text, other) == 0; });
  };
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
    // Full-text and R-tree tables prepare statements that would write; the file is open for
    // reading.
    case SQLITE_INSERT:
    case SQLITE_UPDATE:
    case SQLITE_DELETE:
      return SQLITE_OK;
    case SQLITE_FUNCTION:  // the library's own that act, and those that some programs add to it
      return is_one_of(function, {"load_extension", "fts3_tokenizer", "readfile", "writefile",
                                  "edit", "eval"})
                 ? SQLITE_DENY
                 : SQLITE_OK;
    case SQLITE_PRAGMA:  // which full-text tables ask for
      return is_one_of(name, {"data_version", "page_size"}) ? SQLITE_OK : SQLITE_DENY;
    default:  // ATTACH, changes of the schema, transactions
      return SQLITE_DENY;
  }
}

std::string column_text(sqlite3_stmt* statement, int column) {
  return "column " + std::to_string(column + 1) + " (" +
         quoted(sqlite3_column_name(statement, column)) + ")";
}

// The path as it is written within a URI.
std::string escaped(std::string_view path) {
  std::string escaped;
  for (const char c : path) {
    escaped += c == '%' ? "%25" : c == '?' ? "%3f" : c == '#' ? "%23" : std::string(1, c);
  }
  return escaped;
}

std::string column_count_text(int count) {
  return std::to_string(count) + (count == 1 ? " column" : " columns");
}

}  // namespace

void SqliteSource::DatabaseCloser::operator()(sqlite3* database) const { sqlite3_close(database); }

void SqliteSource::StatementFinalizer::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

SqliteSource::SqliteSource(const std::string& path, const SourceOptions& options)
    : name_(path),
      index_(options.index),
      key_(key_decoder(options.key_encoding)),
      value_(value_decoder(options.value_encoding)) {
  check_file(name_);
  open_database();
  prepare_query(options.sqlite_query);
  check_statement();
}

SqliteSource::~SqliteSource() = default;

void SqliteSource::open_database() {
  // SQLite gives other names a meaning: ":memory:", "file:words.db?mode=rwc".
  const std::string path = name_.starts_with('/') ? name_ : "./" + name_;
  open(path, SQLITE_OPEN_READONLY);
  if (is_whole_without_log()) {
    // SQLite would otherwise make files next to it, and leave them, or fail where it may not.
    std::error_code error;
    written_ = std::filesystem::last_write_time(name_, error);
    open("file:" + escaped(path) + "?immutable=1", SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
  }
  sqlite3* const database = database_.get();
  // The file may come from elsewhere: its views and triggers get no powers, its values no more than
  // the memory we grant. TRUSTED_SCHEMA stays on: without it SQLite 3.40 refuses JSON and full-text
  // search in views and generated columns.
  sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 1, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0, nullptr);
  sqlite3_set_authorizer(database, authorize, nullptr);
  sqlite3_limit(database, SQLITE_LIMIT_LENGTH, static_cast<int>(kMaxFieldBytes));
  sqlite3_limit(database, SQLITE_LIMIT_ATTACHED, 0);
  constexpr int kBusyTimeoutMs = 5000;  // another program may be writing
  sqlite3_busy_timeout(database, kBusyTimeoutMs);
}

void SqliteSource::open(const std::string& name, int flags) {
  sqlite3* database = nullptr;
  const int status = sqlite3_open_v2(name.c_str(), &database, flags, nullptr);
  database_.reset(database);
  if (status == SQLITE_OK) return;
  fail_input(name_, printable(sqlite3_errstr(status)) + "; expected an SQLite database");
}

// True if the file has the mode with a write-ahead log, and no log: then no program has it open.
// SQLite reads the header, through its own descriptor.
bool SqliteSource::is_whole_without_log() const {
  constexpr int kReadVersionAt = 19;  // https://www.sqlite.org/fileformat.html, section 1.3
  sqlite3_file* file = nullptr;
  uint8_t read_version = 0;
  sqlite3_file_control(database_.get(), "main", SQLITE_FCNTL_FILE_POINTER, &file);
  const bool has_log_mode =
      file != nullptr && file->pMethods != nullptr &&
      file->pMethods->xRead(file, &read_version, 1, kReadVersionAt) == SQLITE_OK &&
      read_version == 2;
  // The name follows symbolic links.
  const char* const log = sqlite3_filename_wal(sqlite3_db_filename(database_.get(), "main"));
  return has_log_mode && ::access(log, F_OK) != 0;
}

void SqliteSource::check_status(int status) const {
  const std::string words = printable(sqlite3_errmsg(database_.get()));
  switch (status & 0xff) {
    case SQLITE_NOTADB:
      fail_input(name_, words + "; expected an SQLite database");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      fail_input(name_, words +
                            " by another program; wait until that is done, or read a copy: "
                            "sqlite3 FILE '.backup COPY'");
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
      fail_input(name_, words +
                            ": SQLite has to write a file next to it, to read its write-ahead "
                            "log; read a copy: sqlite3 FILE '.backup COPY'");
    case SQLITE_CORRUPT:
      fail_input(name_,
                 words + "; expected a whole file; sqlite3 FILE .recover shows what is left");
    case SQLITE_IOERR:
    case SQLITE_PROTOCOL:
      fail_input(name_, words + "; expected a readable file");
    case SQLITE_NOMEM:
      throw ResourceError(printable(name_) + ": out of memory");
    default:
      return;
  }
}

void SqliteSource::prepare_query(const std::string& query) {
  const char* rest = query.c_str();
  statement_ = prepare(rest);
  if (!statement_) fail_input(name_, "the query is empty" + std::string(kOneStatement));
  if (prepare(rest)) {
    fail_input(name_, "the query has a second statement" + std::string(kOneStatement));
  }
}

SqliteSource::Statement SqliteSource::prepare(const char*& sql) {
  sqlite3_stmt* statement = nullptr;
  const int status = sqlite3_prepare_v2(database_.get(), sql, -1, &statement, &sql);
  if (status == SQLITE_OK) return Statement(statement);
  check_status(status);
  if (status == SQLITE_AUTH) {
    fail_input(name_, "the query does more than read" + std::string(kOneStatement));
  }
  const std::string words = printable(sqlite3_errmsg(database_.get()));
  fail_input(name_, "query: " + words + std::string(kOneStatement) + " that SQLite can run here");
}

void SqliteSource::check_statement() const {
  if (sqlite3_stmt_readonly(statement_.get()) == 0) {
    fail_input(name_, "the query changes the database" + std::string(kOneStatement));
  }
  if (sqlite3_bind_parameter_count(statement_.get()) != 0) {
    fail_input(name_, "the query has parameters; expected values written out");
  }
  const int count = sqlite3_column_count(statement_.get());
  const int expected = index_ ? 1 : 2;
  if (count != expected) {
    fail_input(name_, "the query gives " + column_count_text(count) + "; expected " +
                          column_count_text(expected) +
                          (index_ ? ", the value" : ", key and value"));
  }
}

bool SqliteSource::next(KeyValuePair& pair) {
  if (!step()) return false;
  pair.place = rows_read_;
  pair.key = index_ ? std::string_view() : read_field(0, key_);
  pair.value = read_field(index_ ? 0 : 1, value_);
  return true;
}

bool SqliteSource::step() {
  if (at_end_) return false;  // one step more would run the query again
  const int status = sqlite3_step(statement_.get());
  at_end_ = status != SQLITE_ROW;
  if (status == SQLITE_DONE) {
    std::error_code error;
    if (written_ && std::filesystem::last_write_time(name_, error) != *written_) {
      fail_input(name_, "another program has changed it meanwhile; build again");
    }
    return false;
  }
  ++rows_read_;
  if (status == SQLITE_ROW) return true;
  if ((status & 0xff) != SQLITE_CORRUPT) check_status(status);
  if (status == SQLITE_TOOBIG) {
    fail_input(place(), "a text or blob beyond the limit; expected at most " +
                            std::to_string(kMaxFieldBytes) + " bytes");
  }
  fail_input(place(), printable(sqlite3_errmsg(database_.get())) + "; expected a readable row");
}

std::string_view SqliteSource::read_field(int column, FieldDecoder& decoder) {
  sqlite3_stmt* statement = statement_.get();
  const int type = sqlite3_column_type(statement, column);
  if (type == SQLITE_NULL || type == SQLITE_FLOAT) {
    fail_input(place(), column_text(statement, column) + " is " +
                            (type == SQLITE_NULL ? "NULL" : "REAL") +
                            "; expected TEXT, BLOB or INTEGER");
  }
  // The pointer comes first: making it may change the length.
  const void* data = type == SQLITE_BLOB ? sqlite3_column_blob(statement, column)
                                         : sqlite3_column_text(statement, column);
  const auto size = static_cast<size_t>(sqlite3_column_bytes(statement, column));
  if (data == nullptr && sqlite3_errcode(database_.get()) == SQLITE_NOMEM) {
    throw ResourceError(printable(name_) + ": out of memory");
  }
  bytes_read_ += size;
  // An empty blob has no address.
  const std::string_view bytes =
      data == nullptr ? std::string_view() : std::string_view(static_cast<const char*>(data), size);
  return type == SQLITE_TEXT ? decoder.decode(bytes, place()) : decoder.accept(bytes, place());
}

}  // namespace blindfuse
