#include "host/ingest/sqlite_source.h"

#include <sqlite3.h>
#include <sys/stat.h>

#include <chrono>
#include <string>
#include <vector>

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
}

TEST_F(SqliteSourceTest, RefusesQueriesThatChangeTheDatabase) {
  execute("CREATE TABLE t (k, v); INSERT INTO t VALUES ('a', '1')");
  const std::string wrong = ": the query changes the database; expected one SELECT statement";
  EXPECT_EQ(error("DELETE FROM t RETURNING k, v"), wrong);
  EXPECT_EQ(error("INSERT INTO t VALUES ('b', '2')"), wrong);
  EXPECT_EQ(error("VACUUM INTO 'other.db'"), wrong);
  const std::string more = ": the query does more than read; expected one SELECT statement";
  for (const char* query : {"DROP TABLE t", "BEGIN", "ATTACH 'other.db' AS o",
                            "PRAGMA writable_schema = 1", "PRAGMA table_info(t)"}) {
    EXPECT_EQ(error(query), more) << query;
  }
  EXPECT_EQ(read("SELECT k, v FROM t"), pairs({{"a", "1", 1}}));
}

TEST_F(SqliteSourceTest, RefusesAllButOneStatement) {
  execute("CREATE TABLE t (x)");
  const std::string second = ": the query has a second statement; expected one SELECT statement";
  EXPECT_EQ(error("SELECT 1, 2; SELECT 3, 4"), second);
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

// SQLite's names for other things may be those of files to the operator. Another file lies where
// SQLite would look.
TEST_F(SqliteSourceTest, TakesNamesLiterally) {
  execute("CREATE TABLE t (k, v); INSERT INTO t VALUES ('other', '')");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(directory_.path(""));
  for (const std::string journal_mode : {"DELETE", "WAL"}) {
    for (const std::string name :
         {":memory:", "file:words.db", "file:words.db?mode=ro", "words.db?mode=ro", "words.db#1",
          "file:w%6frds.db", "w%6frds.db", "-words.db", "file::memory:", "'words.db'"}) {
      path_ = directory_.path(name);
      execute(
          "PRAGMA journal_mode = " + journal_mode +
          "; CREATE TABLE IF NOT EXISTS t (k, v); DELETE FROM t; INSERT INTO t VALUES ('a', '1')");
      path_ = name;
      EXPECT_EQ(read("SELECT k, v FROM t"), pairs({{"a", "1", 1}})) << name << journal_mode;
    }
  }
  path_ = "";
  EXPECT_EQ(error("SELECT k, v FROM t"), ": No such file or directory; expected a readable file");
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
  std::filesystem::create_symlink("words.db", directory_.path("link.db"));
  for (const std::string name : {"words.db", "link.db"}) {
    path_ = directory_.path(name);
    EXPECT_EQ(read("SELECT k, v FROM t"), pairs({{"a", "1", 1}})) << name;
    EXPECT_EQ(content(), before);
  }
}

TEST_F(SqliteSourceTest, LeavesNoFileNextToADatabaseThatIsClosed) {
  execute("PRAGMA journal_mode = WAL; CREATE TABLE t (k, v); INSERT INTO t VALUES ('a', '1')");
  EXPECT_EQ(read("SELECT k, v FROM t"), pairs({{"a", "1", 1}}));
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory_.path(""))) {
    names.push_back(entry.path().filename());
  }
  EXPECT_EQ(names, std::vector<std::string>{"words.db"});
}

TEST_F(SqliteSourceTest, NoticesAWriterThatCameMeanwhile) {
  execute("PRAGMA journal_mode = WAL; CREATE TABLE t (k, v); INSERT INTO t VALUES ('a', '1')");
  // So that what is written next has another time.
  std::filesystem::last_write_time(path_,
                                   std::filesystem::last_write_time(path_) - std::chrono::hours(1));
  SourceOptions options;
  options.sqlite_query = "SELECT k, v FROM t";
  SqliteSource source(path_, options);
  KeyValuePair pair;
  EXPECT_TRUE(source.next(pair));
  execute("INSERT INTO t VALUES ('b', '2')");
  EXPECT_EQ(error_of([&] { source.next(pair); }),
            path_ + ": another program has changed it meanwhile; build again");
}

// What SQLite 3.40 calls unsafe in a schema, and what full-text and R-tree tables do to open.
TEST_F(SqliteSourceTest, ReadsOrdinarySchemas) {
  execute(
      "CREATE TABLE t (doc TEXT CHECK (json_valid(doc)),"
      "  name TEXT AS (json_extract(doc, '$.name')), DEFAULT_DOC TEXT DEFAULT (json_object()));"
      "CREATE INDEX by_name ON t (json_extract(doc, '$.name'));"
      "CREATE INDEX cats ON t (doc) WHERE json_extract(doc, '$.name') = 'cat';"
      "INSERT INTO t (doc) VALUES ('{\"name\":\"cat\",\"value\":\"Katze\"}');"
      "CREATE VIEW members AS SELECT json_extract(doc, '$.name') AS k, doc ->> 'value' AS v FROM t;"
      "CREATE VIEW trees AS SELECT key AS k, value AS v FROM t, json_each(t.doc) WHERE key = "
      "'name';"
      "CREATE VIRTUAL TABLE five USING fts5(k, v);"
      "INSERT INTO five VALUES ('cat', 'Katze'), ('dog', 'Hund');"
      "CREATE VIEW fives AS SELECT k, highlight(five, 1, '<', '>') AS v FROM five('katze');"
      "CREATE VIRTUAL TABLE four USING fts4(k, v); INSERT INTO four VALUES ('cat', 'Katze');"
      "CREATE VIEW fours AS SELECT k, snippet(four, '<', '>') AS v FROM four WHERE four MATCH "
      "'katze';"
      "CREATE VIRTUAL TABLE places USING rtree(id, low, high); INSERT INTO places VALUES (7, 1, 2);"
      "CREATE VIEW near AS SELECT id, 'near' FROM places WHERE low < 3;");
  const Outcome cat = pairs({{"cat", "Katze", 1}});
  EXPECT_EQ(read("SELECT name, doc ->> 'value' FROM t WHERE json_extract(doc, '$.name') = 'cat'"),
            cat);
  EXPECT_EQ(read("SELECT k, v FROM members"), cat);
  EXPECT_EQ(read("SELECT k, v FROM trees"), pairs({{"name", "cat", 1}}));
  EXPECT_EQ(read("SELECT k, v FROM fives"), pairs({{"cat", "<Katze>", 1}}));
  EXPECT_EQ(read("SELECT k, v FROM five ORDER BY rank LIMIT 1"), cat);
  EXPECT_EQ(read("SELECT k, v FROM fours"), pairs({{"cat", "<Katze>", 1}}));
  EXPECT_EQ(read("SELECT * FROM near"), pairs({{"7", "near", 1}}));
  EXPECT_EQ(read("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2) "
                 "SELECT i, k FROM n, members"),
            pairs({{"1", "cat", 1}, {"2", "cat", 2}}));
}

TEST_F(SqliteSourceTest, GivesViewsNoPowers) {
  execute(
      "CREATE TABLE t (x);"
      "CREATE VIEW pragmas AS SELECT name, cid FROM pragma_table_info('t');"
      "CREATE VIEW extensions AS SELECT 1, load_extension('evil');"
      "CREATE VIEW tokenizers AS SELECT 1, fts3_tokenizer('simple');");
  EXPECT_EQ(error("SELECT name, cid FROM pragmas"),
            ", row 1: not authorized; expected a readable row");
  const std::string right = "; expected one SELECT statement that SQLite can run here";
  EXPECT_EQ(error("SELECT * FROM extensions"), ": query: unsafe use of load_extension()" + right);
  EXPECT_EQ(error("SELECT * FROM tokenizers"), ": query: unsafe use of fts3_tokenizer()" + right);
  EXPECT_EQ(error("SELECT 1, load_extension('evil')"),
            ": query: not authorized to use function: load_extension" + right);
  EXPECT_EQ(error("SELECT 1, fts3_tokenizer('simple')"),
            ": query: not authorized to use function: fts3_tokenizer" + right);
}

TEST_F(SqliteSourceTest, TellsTheFileFromTheQuery) {
  execute("CREATE TABLE t (k, v); INSERT INTO t VALUES ('a', '1')");
  sqlite3* writer = nullptr;
  ASSERT_EQ(sqlite3_open(path_.c_str(), &writer), SQLITE_OK);
  sqlite3_exec(writer, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr);
  EXPECT_EQ(error("SELECT k, v FROM t"),
            ": database is locked by another program; wait until that is done, or read a copy: "
            "sqlite3 FILE '.backup COPY'");
  // A log that cannot be read: its shared memory has the name of a link to nothing.
  sqlite3_exec(writer, "COMMIT; PRAGMA journal_mode = WAL", nullptr, nullptr, nullptr);
  sqlite3_close(writer);
  directory_.write("words.db-wal", "");
  std::filesystem::create_symlink("nowhere", directory_.path("words.db-shm"));
  EXPECT_EQ(error("SELECT k, v FROM t"),
            ": unable to open database file: SQLite has to write a file next to it, to read its "
            "write-ahead log; read a copy: sqlite3 FILE '.backup COPY'");
  std::filesystem::remove(directory_.path("words.db-shm"));
  std::filesystem::remove(directory_.path("words.db-wal"));
  std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(100);  // the first page's own header
  file << "damaged!";
  file.close();
  EXPECT_EQ(
      error("SELECT k, v FROM t"),
      ": database disk image is malformed; expected a whole file; sqlite3 FILE .recover shows "
      "what is left");
}

TEST_F(SqliteSourceTest, ReadsADatabaseInUtf16) {
  execute("PRAGMA encoding = 'UTF-16le'; CREATE TABLE t (x); INSERT INTO t VALUES (char(8364))");
  EXPECT_EQ(read("SELECT x, x FROM t"), pairs({{"\xE2\x82\xAC", "\xE2\x82\xAC", 1}}));
}

TEST_F(SqliteSourceTest, RefusesAFileThatIsNoDatabase) {
  directory_.write("words.db", std::string(4096, 'x'));
  EXPECT_EQ(error("SELECT 1, 2 FROM t"), ": file is not a database; expected an SQLite database");
}

}  // namespace
}  // namespace blindfuse
