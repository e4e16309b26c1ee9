#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <set>
#include <thread>

#include "tests/ingest/ingest_testing.h"

namespace blindfuse {
namespace {

using namespace ingest_testing;

const std::string kTsv = "a\t1\n";
const std::string kCsv = "key,value\na,1\n";
const std::string kNdjson = "{\"key\":\"a\",\"value\":\"1\"}\n";

Outcome read_path(const std::string& path, const SourceOptions& options = {}) {
  return read_all([&] { return open_source(path, options); });
}

SourceOptions with_format(SourceFormat format) {
  SourceOptions options;
  options.format = format;
  return options;
}

// Makes a file standard input while it lives.
class StandardInputFrom {
 public:
  explicit StandardInputFrom(const std::string& path) : previous_(dup(STDIN_FILENO)) {
    const int descriptor = open(path.c_str(), O_RDONLY);
    EXPECT_EQ(dup2(descriptor, STDIN_FILENO), STDIN_FILENO);
    close(descriptor);
  }
  ~StandardInputFrom() {
    dup2(previous_, STDIN_FILENO);
    close(previous_);
  }
  StandardInputFrom(const StandardInputFrom&) = delete;
  StandardInputFrom& operator=(const StandardInputFrom&) = delete;

 private:
  int previous_;
};

TEST(OpenSource, TellsTextFormatsByName) {
  const TemporaryDirectory directory;
  for (const std::string name : {"words.tsv", "words.TSV", "my.words.tsv"}) {
    EXPECT_EQ(read_path(directory.write(name, kTsv)), pairs({{"a", "1", 1}}));
  }
  EXPECT_EQ(read_path(directory.write("words.csv", kCsv)), pairs({{"a", "1", 2}}));
  EXPECT_EQ(read_path(directory.write("words.ndjson", kNdjson)), pairs({{"a", "1", 1}}));
  EXPECT_EQ(read_path(directory.write("words.jsonl", kNdjson)), pairs({{"a", "1", 1}}));
}

TEST(OpenSource, TellsDatabasesByName) {
  const TemporaryDirectory directory;
  SourceOptions options;
  options.sqlite_query = "SELECT 'a', 1";
  for (const std::string name : {"words.sqlite", "words.sqlite3", "words.db"}) {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(directory.path(name).c_str(), &database), SQLITE_OK);
    sqlite3_exec(database, "CREATE TABLE t (x)", nullptr, nullptr, nullptr);
    sqlite3_close(database);
    EXPECT_EQ(read_path(directory.path(name), options), pairs({{"a", "1", 1}}));
    EXPECT_EQ(read_path(directory.path(name)).error,
              directory.path(name) +
                  ": no query for an SQLite database; expected --sqlite-query 'SELECT ...'");
  }
}

// What all formats have in common: what each reads of a pair whose key is hex and value base64.
TEST(OpenSource, DecodesKeysAndValuesOfEveryFormat) {
  const TemporaryDirectory directory;
  const auto texts_of = [](const std::string& key, const std::string& value) {
    return std::vector<std::pair<std::string, std::string>>{
        {"a.tsv", key + "\t" + value + "\n"},
        {"a.csv", "key,value\n" + key + "," + value + "\n"},
        {"a.ndjson", "{\"key\":\"" + key + "\",\"value\":\"" + value + "\"}\n"}};
  };
  const auto error_of_all = [&](const std::string& key, const std::string& value,
                                const SourceOptions& options) {
    std::set<std::string> errors;  // without the place
    for (const auto& [name, text] : texts_of(key, value)) {
      const std::string error = read_path(directory.write(name, text), options).error;
      errors.insert(error.substr(std::min(error.size(), error.find(", line") + 10)));
    }
    EXPECT_EQ(errors.size(), 1u) << testing::PrintToString(errors);
    return *errors.begin();
  };
  SourceOptions encoded;
  encoded.key_encoding = TextEncoding::kHex;
  encoded.value_encoding = TextEncoding::kBase64;
  for (const auto& [name, text] : texts_of("00ff", "AAE=")) {
    const std::string path = directory.write(name, text);
    EXPECT_EQ(read_path(path, encoded).pairs.at(0).key, "\0\xff"s) << name;
    EXPECT_EQ(read_path(path, encoded).pairs.at(0).value, "\0\1"s) << name;
    const auto source = open_source(path, {});
    EXPECT_EQ(source->name(), path);
    EXPECT_EQ(source->place_unit(), "line");
    EXPECT_EQ(source->bytes_total(), text.size());
    KeyValuePair pair;
    while (source->next(pair)) {
    }
    EXPECT_EQ(source->bytes_read(), text.size());
  }
  EXPECT_EQ(error_of_all("0z", "", encoded),
            "key is not hex at byte 2 (\"z\"); expected digits 0-9, a-f or A-F");
  EXPECT_EQ(error_of_all("00", "AA", encoded),
            "value has 2 base64 characters; expected a multiple of 4, padded with =");
  EXPECT_EQ(error_of_all(std::string(65'537, 'k'), "v", {}),
            "key of 65537 bytes; expected at most 65536");
  EXPECT_EQ(error_of_all("k", std::string((16 << 20) + 1, 'v'), {}),
            "value of 16777217 bytes; expected at most 16777216");
}

// Made by gzip, zstd, xz and zip of the text "a\t1\n".
const std::vector<std::array<std::string, 4>> kCompressed = {
    {"gzip", ".gz", "gunzip -c",
     "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x4b\xe4\x34\xe4\x02\x00"s},
    {"zstd", ".zst", "zstd -dc", "\x28\xb5\x2f\xfd\x24\x04\x21\x00\x00\x61\x09\x31\x0a"s},
    {"xz", ".xz", "xz -dc", "\xfd\x37\x7a\x58\x5a\x00\x00\x04\xe6\xd6\xb4\x46"s},
    {"zip", ".zip", "unzip -p", "PK\x03\x04\x0a\x00\x00\x00\x00\x00"s},
};

TEST(OpenSource, NamesTheCommandThatDecompresses) {
  const TemporaryDirectory directory;
  for (const auto& [name, extension, command, bytes] : kCompressed) {
    const auto message = [&](const std::string& source) {
      return source + ": this is " + name + "-compressed; decompress it: " + command +
             " FILE | blindfuse build - --format tsv|csv|ndjson ...";
    };
    for (const char* format : {".tsv", ".csv", ".ndjson"}) {
      const std::string path = directory.write("words" + std::string(format), bytes);
      EXPECT_EQ(read_path(path).error, message(path));
    }
    const std::string path = directory.write("words.tsv" + extension, bytes);
    EXPECT_EQ(read_path(path).error, message(path));
    EXPECT_EQ(read_path(path, with_format(SourceFormat::kTsv)).error, message(path));
    const StandardInputFrom input(path);
    EXPECT_EQ(read_path("-", with_format(SourceFormat::kTsv)).error, message("standard input"));
  }
}

// What iconv makes of "ab\t1\n".
TEST(OpenSource, NamesTheCommandThatConvertsUtf16) {
  const TemporaryDirectory directory;
  const std::string little = "a\0b\0\t\0001\0\n\0"s;
  const std::string big = "\0a\0b\0\t\0001\0\n"s;
  for (const auto& [name, bytes] : {std::pair("LE"s, little),
                                    {"BE"s, big},
                                    {"LE"s, "\xFF\xFE" + little},
                                    {"BE"s, "\xFE\xFF" + big}}) {
    for (const char* format : {".tsv", ".csv", ".ndjson"}) {
      const std::string path = directory.write("words" + std::string(format), bytes);
      EXPECT_EQ(read_path(path).error, path + ": this is UTF-16; convert it: iconv -f UTF-16" +
                                           name +
                                           " -t UTF-8 FILE | blindfuse build - --format "
                                           "tsv|csv|ndjson ...");
    }
  }
}

TEST(OpenSource, ReadsTextsThatBeginAlike) {
  const TemporaryDirectory directory;
  for (const std::string start : {"P", "PK", "PK\x03", "(", "PK\x04\x03"}) {
    const std::string path = directory.write("words.tsv", start + "\t1\n");
    EXPECT_EQ(read_path(path), pairs({{start, "1", 1}}));
  }
}

TEST(OpenSource, AsksForTheFormatWhenTheNameDoesNotTell) {
  const TemporaryDirectory directory;
  for (const std::string name : {"words.txt", "words", "tsv", "words.tsv.bak", "words.json"}) {
    const std::string path = directory.write(name, kTsv);
    EXPECT_EQ(read_path(path).error, path +
                                         ": the name does not tell the format; "
                                         "expected --format tsv|csv|ndjson|sqlite");
    EXPECT_EQ(read_path(path, with_format(SourceFormat::kTsv)), pairs({{"a", "1", 1}}));
  }
}

TEST(OpenSource, ReadsStandardInput) {
  const TemporaryDirectory directory;
  const auto read_input = [&](const std::string& text, SourceFormat format) {
    const StandardInputFrom input(directory.write("input", text));
    return read_path("-", with_format(format));
  };
  EXPECT_EQ(read_input(kTsv, SourceFormat::kTsv), pairs({{"a", "1", 1}}));
  EXPECT_EQ(read_input(kCsv, SourceFormat::kCsv), pairs({{"a", "1", 2}}));
  EXPECT_EQ(read_input(kNdjson, SourceFormat::kNdjson), pairs({{"a", "1", 1}}));
  EXPECT_EQ(read_input("a\n", SourceFormat::kTsv).error,
            "standard input, line 1: no tab; expected KEY<tab>VALUE");
}

TEST(OpenSource, WantsATextFormatForStandardInput) {
  EXPECT_EQ(read_path("-").error,
            "standard input: no name to tell the format by; expected --format tsv|csv|ndjson");
  SourceOptions options = with_format(SourceFormat::kSqlite);
  options.sqlite_query = "SELECT 1, 2";
  EXPECT_EQ(read_path("-", options).error,
            "standard input: SQLite needs a file; expected --format tsv|csv|ndjson");
}

TEST(OpenSource, ReadsANamedPipe) {
  const TemporaryDirectory directory;
  const std::string path = directory.path("pipe.tsv");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  std::string text;
  Outcome expected;
  for (uint64_t i = 1; i <= 20'000; ++i) {
    text += "key " + std::to_string(i) + "\tvalue\n";
    expected.pairs.push_back({"key " + std::to_string(i), "value", i});
  }
  std::thread writer([&] { std::ofstream(path) << text; });
  EXPECT_EQ(read_path(path), expected);
  writer.join();
}

TEST(OpenSource, SaysWhyAFileCannotBeRead) {
  const TemporaryDirectory directory;
  const std::string missing = directory.path("missing.csv");
  EXPECT_EQ(read_path(missing).error,
            missing + ": No such file or directory; expected a readable file");
  const std::string itself = directory.path("");
  EXPECT_EQ(read_path(itself, with_format(SourceFormat::kTsv)).error,
            itself + ": Is a directory; expected a readable file");
  EXPECT_EQ(read_path(itself).error, itself + ": Is a directory; expected a readable file");
  EXPECT_EQ(read_path("/proc/self/mem", with_format(SourceFormat::kTsv)).error,
            "/proc/self/mem: Input/output error; expected a readable file");
}

TEST(OpenSource, PrefersTheFormatThatIsGiven) {
  const TemporaryDirectory directory;
  EXPECT_EQ(read_path(directory.write("words.tsv", kCsv), with_format(SourceFormat::kCsv)),
            pairs({{"a", "1", 2}}));
}

}  // namespace
}  // namespace blindfuse
