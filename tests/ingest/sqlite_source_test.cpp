#include "host/ingest/sqlite_source.h"

#include <sqlite3.h>
#include <sys/stat.h>

#include "tests/ingest/ingest_testing.h"

namespace blindfuse {
namespace {

using namespace ingest_testing;

class SqliteSourceTest : public testing::Test {
 protected:
  // Makes the database that the other functions read.
  void execute(const std::string& sql) const {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &database), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(database);
    sqlite3_close(database);
  }

  Outcome read(const std::string& query, SourceOptions options = {}) const {
    options.sqlite_query = query;
    return read_all([&] { return std::make_unique<SqliteSource>(path_, options); });
  }

  // The error without the path that begins it.
  std::string error(const std::string& query, const SourceOptions& options = {}) const {
    const std::string message = read(query, options).error;
    return message.starts_with(path_) ? message.substr(path_.size()) : message;
  }

  TemporaryDirectory directory_;
  std::string path_ = directory_.path("words.db");
};

TEST_F(SqliteSourceTest, ReadsTheRowsOfAQuery) {
  execute(
      "CREATE TABLE words (word TEXT, meaning TEXT);"
      "INSERT INTO words VALUES ('cat', 'Katze'), ('dog', 'Hund'), ('none', '')");
  EXPECT_EQ(read("SELECT word, meaning FROM words ORDER BY word"),
            pairs({{"cat", "Katze", 1}, {"dog", "Hund", 2}, {"none", "", 3}}));
  EXPECT_EQ(read("SELECT meaning FROM words ORDER BY meaning DESC", index_options()),
            pairs({{"", "Katze", 1}, {"", "Hund", 2}, {"", "", 3}}));
  EXPECT_EQ(read("SELECT word, meaning FROM words WHERE 0"), pairs({}));
}

TEST_F(SqliteSourceTest, TakesTextBlobsAndIntegers) {
  execute("CREATE TABLE t (x)");
  EXPECT_EQ(read("SELECT -9223372036854775807 - 1, x'00ff0a'"),
            pairs({{"-9223372036854775808", "\x00\xFF\x0A"s, 1}}));
  EXPECT_EQ(read("SELECT x'', 0"), pairs({{"", "0", 1}}));
  EXPECT_EQ(read("SELECT 'a' || char(0) || 'b', char(8364)"),
            pairs({{"a\0b"s, "\xE2\x82\xAC", 1}}));
}

TEST_F(SqliteSourceTest, ReadsADatabaseInUtf16) {
  execute("PRAGMA encoding = 'UTF-16le'; CREATE TABLE t (x); INSERT INTO t VALUES (char(8364))");
  EXPECT_EQ(read("SELECT x, x FROM t"), pairs({{"\xE2\x82\xAC", "\xE2\x82\xAC", 1}}));
}

TEST_F(SqliteSourceTest, DecodesOnlyText) {
  execute("CREATE TABLE t (x)");
  SourceOptions options;
  options.key_encoding = TextEncoding::kHex;
  options.value_encoding = TextEncoding::kBase64;
  EXPECT_EQ(read("SELECT '00ff', 'AAE='", options), pairs({{"\x00\xFF"s, "\x00\x01"s, 1}}));
  EXPECT_EQ(read("SELECT x'7a', 123", options), pairs({{"z", "123", 1}}));
  EXPECT_EQ(error("SELECT '0z', ''", options),
            ", row 1: key is not hex at byte 2 (\"z\"); expected digits 0-9, a-f or A-F");
  EXPECT_EQ(error("SELECT 'a', CAST(x'61ff' AS TEXT)"),
            ", row 1: value is not UTF-8 at byte 2 (\"\\xff\"); "
            "expected UTF-8, or bytes written as hex or base64");
}

TEST_F(SqliteSourceTest, RefusesNullAndReal) {
  execute("CREATE TABLE t (k, v); INSERT INTO t VALUES ('a', '1'), (NULL, '2'), ('c', 1.5)");
  EXPECT_EQ(error("SELECT k, v FROM t"),
            ", row 2: column 1 (\"k\") is NULL; expected TEXT, BLOB or INTEGER");
  EXPECT_EQ(error("SELECT k, v AS half FROM t WHERE k NOT NULL"),
            ", row 2: column 2 (\"half\") is REAL; expected TEXT, BLOB or INTEGER");
  EXPECT_EQ(error("SELECT NULL", index_options()),
            ", row 1: column 1 (\"NULL\") is NULL; expected TEXT, BLOB or INTEGER");
}

TEST_F(SqliteSourceTest, RefusesAnotherNumberOfColumns) {
  execute("CREATE TABLE t (x)");
  EXPECT_EQ(error("SELECT 1"), ": the query gives 1 column; expected 2 columns, key and value");
  EXPECT_EQ(error("SELECT 1, 2, 3"),
            ": the query gives 3 columns; expected 2 columns, key and value");
  EXPECT_EQ(error("SELECT 1, 2", index_options()),
            ": the query gives 2 columns; expected 1 column, the value");
  EXPECT_EQ(error("BEGIN"), ": the query gives 0 columns; expected 2 columns, key and value");
}

TEST_F(SqliteSourceTest, RefusesQueriesThatChangeTheDatabase) {
  execute("CREATE TABLE t (k, v); INSERT INTO t VALUES ('a', '1')");
  const std::string wrong = ": the query changes the database; expected one SELECT statement";
  EXPECT_EQ(error("DELETE FROM t RETURNING k, v"), wrong);
  EXPECT_EQ(error("INSERT INTO t VALUES ('b', '2')"), wrong);
  EXPECT_EQ(error("DROP TABLE t"), wrong);
  EXPECT_EQ(read("SELECT k, v FROM t"), pairs({{"a", "1", 1}}));
}

TEST_F(SqliteSourceTest, RefusesAllButOneStatement) {
  execute("CREATE TABLE t (x)");
  const std::string second = ": the query has a second statement; expected one SELECT statement";
  EXPECT_EQ(error("SELECT 1, 2; SELECT 3, 4"), second);
  EXPECT_EQ(error("SELECT 1, 2; DROP TABLE t;"), second);
  EXPECT_EQ(error("SELECT 1, 2; nonsense"),
            ": query: near \"nonsense\": syntax error; expected one SELECT statement that SQLite "
            "can run here");
  EXPECT_EQ(error(""), ": the query is empty; expected one SELECT statement");
  EXPECT_EQ(error(" -- nothing"), ": the query is empty; expected one SELECT statement");
  EXPECT_EQ(read("SELECT 1, 2; -- that is all\n /* really */ "), pairs({{"1", "2", 1}}));
}

TEST_F(SqliteSourceTest, RefusesQueriesThatDoNotRun) {
  execute("CREATE TABLE t (x)");
  EXPECT_EQ(error("SELECT k, v FROM missing"),
            ": query: no such table: missing; expected one SELECT statement that SQLite can run "
            "here");
  EXPECT_EQ(error("SELECT ?, 2"), ": the query has parameters; expected values written out");
}

TEST_F(SqliteSourceTest, NamesTheRowWhereTheQueryFails) {
  execute("CREATE TABLE t (x); INSERT INTO t VALUES (1), (-9223372036854775808), (2)");
  const Outcome outcome = read("SELECT x, abs(x) FROM t");
  EXPECT_EQ(outcome.pairs, (std::vector<Pair>{{"1", "1", 1}}));
  EXPECT_EQ(outcome.error, path_ + ", row 2: integer overflow; expected a readable row");
}

TEST_F(SqliteSourceTest, LimitsKeysValuesAndFields) {
  execute("CREATE TABLE t (x)");
  EXPECT_EQ(read("SELECT zeroblob(65536), ''").error, "");
  EXPECT_EQ(error("SELECT zeroblob(65537), ''"),
            ", row 1: key of 65537 bytes; expected at most 65536");
  EXPECT_EQ(error("SELECT 1, zeroblob(16777217)"),
            ", row 1: value of 16777217 bytes; expected at most 16777216");
  EXPECT_EQ(error("SELECT 1, zeroblob(67108865)"),
            ", row 1: a text or blob beyond the limit; expected at most 67108864 bytes");
}

TEST_F(SqliteSourceTest, RefusesAFileThatIsNoDatabase) {
  directory_.write("words.db", std::string(4096, 'x'));
  EXPECT_EQ(error("SELECT 1, 2 FROM t"), ": file is not a database; expected an SQLite database");
}

TEST_F(SqliteSourceTest, NamesTheRowWhereTheFileIsDamaged) {
  execute(
      "PRAGMA page_size = 512; CREATE TABLE t (k, v);"
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)"
      "INSERT INTO t SELECT i, hex(zeroblob(50)) FROM n");
  std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(512 * 20);
  file << std::string(512 * 20, '\xFF');
  file.close();
  const Outcome outcome = read("SELECT k, v FROM t");
  EXPECT_GT(outcome.pairs.size(), 10u);
  EXPECT_EQ(outcome.error, path_ + ", row " + std::to_string(outcome.pairs.size() + 1) +
                               ": database disk image is malformed; expected a readable row");
}

TEST_F(SqliteSourceTest, SaysWhyAFileCannotBeOpened) {
  EXPECT_EQ(error("SELECT 1, 2"), ": No such file or directory; expected a readable file");
  EXPECT_FALSE(std::filesystem::exists(path_)) << "reading must not create it";
  path_ = directory_.path("");
  EXPECT_EQ(error("SELECT 1, 2"), ": Is a directory; expected a readable file");
  path_ = directory_.path("pipe");
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(error("SELECT 1, 2"), ": not a file; expected an SQLite database");
}

// ":memory:" is not a file to SQLite, but it may be one to the operator.
TEST_F(SqliteSourceTest, TakesNamesLiterally) {
  execute("CREATE TABLE t (k, v); INSERT INTO t VALUES ('a', '1')");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::copy_file(path_, directory_.path(":memory:"));
  std::filesystem::current_path(directory_.path(""));
  path_ = ":memory:";
  EXPECT_EQ(read("SELECT k, v FROM t"), pairs({{"a", "1", 1}}));
  std::filesystem::current_path(before);
}

// A write-ahead log that a writer left behind is read, but merging it is the writer's business.
TEST_F(SqliteSourceTest, LeavesTheFileAsItIs) {
  const auto content = [&] {
    std::ifstream file(path_, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  sqlite3* writer = nullptr;
  ASSERT_EQ(sqlite3_open(directory_.path("other.db").c_str(), &writer), SQLITE_OK);
  sqlite3_exec(writer,
               "PRAGMA journal_mode = WAL; CREATE TABLE t (k, v); INSERT INTO t VALUES ('a', '1')",
               nullptr, nullptr, nullptr);
  std::filesystem::copy_file(directory_.path("other.db"), path_);
  std::filesystem::copy_file(directory_.path("other.db-wal"), path_ + "-wal");
  sqlite3_close(writer);
  const std::string before = content();
  EXPECT_EQ(read("SELECT k, v FROM t"), pairs({{"a", "1", 1}}));
  EXPECT_EQ(content(), before);
}

TEST_F(SqliteSourceTest, GivesViewsNoPowers) {
  execute("CREATE TABLE t (x); CREATE VIEW v AS SELECT name, cid FROM pragma_table_info('t')");
  EXPECT_EQ(error("SELECT name, cid FROM v"),
            ": query: unsafe use of virtual table \"pragma_table_info\"; expected one SELECT "
            "statement that SQLite can run here");
}

TEST_F(SqliteSourceTest, TellsItsProgress) {
  execute("CREATE TABLE t (x)");
  SourceOptions options;
  options.sqlite_query = "SELECT 'abc', x'0102'";
  SqliteSource source(path_, options);
  EXPECT_EQ(source.name(), path_);
  EXPECT_EQ(source.place_unit(), "row");
  EXPECT_EQ(source.bytes_total(), std::nullopt);
  EXPECT_EQ(source.bytes_read(), 0u);
  KeyValuePair pair;
  EXPECT_TRUE(source.next(pair));
  EXPECT_EQ(source.bytes_read(), 5u);
}

}  // namespace
}  // namespace blindfuse
