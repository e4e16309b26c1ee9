#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <random>
#include <thread>

#include "host/ingest/byte_source.h"
#include "host/ingest/key_value_source.h"
#include "host/ingest/line_reader.h"
#include "host/ingest/text_encoding.h"
#include "tests/ingest/ingest_testing.h"

namespace blindfuse {
namespace {

using namespace ingest_testing;

struct ReadLine {
  std::string text;
  std::string terminator;
  bool operator==(const ReadLine&) const = default;
};

std::vector<ReadLine> lines_of(LineReader reader) {
  std::vector<ReadLine> lines;
  Line line;
  while (reader.next(line)) {
    lines.push_back({std::string(line.text), std::string(line.terminator)});
    EXPECT_EQ(line.number, lines.size());
  }
  EXPECT_FALSE(reader.next(line)) << "the end stays the end";
  return lines;
}

LineReader reader_of(std::string_view text, size_t buffer_bytes,
                     size_t max_line_bytes = LineReader::kMaxLineBytes) {
  return LineReader(std::make_unique<MemoryByteSource>(text, "words"), buffer_bytes,
                    max_line_bytes);
}

void expect_lines(std::string_view text, const std::vector<ReadLine>& expected) {
  for (const size_t buffer_bytes : std::vector<size_t>{1, 2, 3, 4, 5, 6, 7, 1 << 20}) {
    EXPECT_EQ(lines_of(reader_of(text, buffer_bytes)), expected) << "buffer of " << buffer_bytes;
    for (size_t most = 1; most <= 3; ++most) {
      EXPECT_EQ(lines_of(LineReader(std::make_unique<ShortReads>(text, most), buffer_bytes)),
                expected)
          << "buffer of " << buffer_bytes << ", reads of " << most;
    }
  }
}

TEST(LineReader, SplitsAtLineFeeds) {
  expect_lines("one\ntwo\n", {{"one", "\n"}, {"two", "\n"}});
  expect_lines("one\r\ntwo\r\n", {{"one", "\r\n"}, {"two", "\r\n"}});
  expect_lines("one\r\ntwo\nthree", {{"one", "\r\n"}, {"two", "\n"}, {"three", ""}});
}

TEST(LineReader, KeepsEmptyLines) {
  expect_lines("", {});
  expect_lines("\n", {{"", "\n"}});
  expect_lines("\r\n", {{"", "\r\n"}});
  expect_lines("\n\n\r\na\n\n", {{"", "\n"}, {"", "\n"}, {"", "\r\n"}, {"a", "\n"}, {"", "\n"}});
}

TEST(LineReader, KeepsCarriageReturnsThatEndNoLine) {
  expect_lines("a\rb\r\r\nc\r", {{"a\rb\r", "\r\n"}, {"c\r", ""}});
}

TEST(LineReader, KeepsZeroBytes) {
  expect_lines("a\0b\n\0\n\0"sv, {{"a\0b"s, "\n"}, {"\0"s, "\n"}, {"\0"s, ""}});
}

TEST(LineReader, SkipsAByteOrderMarkAtTheBeginningOnly) {
  expect_lines("\xEF\xBB\xBF", {});
  expect_lines("\xEF\xBB\xBF\n", {{"", "\n"}});
  expect_lines(
      "\xEF\xBB\xBF"
      "a\n\xEF\xBB\xBF"
      "b",
      {{"a", "\n"},
       {"\xEF\xBB\xBF"
        "b",
        ""}});
  expect_lines("\xEF\xBB\xBF\xEF\xBB\xBF", {{"\xEF\xBB\xBF", ""}});
  expect_lines("\xEF\xBB", {{"\xEF\xBB", ""}});
  expect_lines("\xEF\xBB\na", {{"\xEF\xBB", "\n"}, {"a", ""}});
}

TEST(LineReader, ReadsRandomTextTheSameWithAnyBuffer) {
  std::mt19937 random(20240611);
  for (int round = 0; round < 300; ++round) {
    std::string text;
    std::vector<ReadLine> expected;
    const size_t line_count = random() % 12;
    for (size_t i = 0; i < line_count; ++i) {
      // Without \r, which is data or not depending on what follows.
      std::string line;
      for (size_t size = random() % 30; size > 0; --size) line += "ab\0\t"[random() % 4];
      const std::string terminator = random() % 2 == 0 ? "\n" : "\r\n";
      text += line + terminator;
      expected.push_back({line, terminator});
    }
    for (size_t buffer_bytes = 1; buffer_bytes <= 33; ++buffer_bytes) {
      ASSERT_EQ(lines_of(reader_of(text, buffer_bytes)), expected) << testing::PrintToString(text);
    }
  }
}

TEST(LineReader, TakesLinesUpToTheLimitAndNoLonger) {
  const std::string too_long = "words, line 2: longer than the limit; expected at most 5 bytes";
  for (const size_t buffer_bytes : std::vector<size_t>{1, 2, 3, 5, 6, 7, 8, 9, 64}) {
    for (const std::string end : {"", "\n", "\r\n", "\nnext", "\r\nnext"}) {
      const auto error = [&](const std::string& text) {
        return error_of([&] { lines_of(reader_of(text, buffer_bytes, 5)); });
      };
      EXPECT_EQ(error("a\n12345" + end), "") << buffer_bytes;
      EXPECT_EQ(error("a\n123456" + end), too_long) << buffer_bytes;
      EXPECT_EQ(error("a\n1234567890" + end), too_long) << buffer_bytes;
    }
  }
  EXPECT_EQ(error_of([&] { lines_of(reader_of("a\n12345\r", 4, 5)); }), too_long)
      << "a carriage return at the end of the text is part of the line";
}

// Gives the same byte forever, and counts.
class EndlessLine : public ByteSource {
 public:
  explicit EndlessLine(uint64_t& given) : given_(given) {}
  size_t read(std::span<char> into) override {
    std::fill(into.begin(), into.end(), 'a');
    given_ += into.size();
    return into.size();
  }
  const std::string& name() const override { return name_; }
  std::optional<uint64_t> bytes_total() const override { return std::nullopt; }

 private:
  std::string name_ = "endless";
  uint64_t& given_;
};

TEST(LineReader, StopsReadingAnEndlessLineAtTheLimit) {
  uint64_t given = 0;
  LineReader reader(std::make_unique<EndlessLine>(given));
  Line line;
  EXPECT_EQ(error_of([&] { reader.next(line); }),
            "endless, line 1: longer than the limit; expected at most 67108864 bytes");
  EXPECT_LE(given, 2 * LineReader::kMaxLineBytes);
}

using Ownership = FileByteSource::Ownership;

std::string read_to_end(ByteSource& source, size_t block_bytes) {
  std::string all;
  std::vector<char> block(block_bytes);
  while (const size_t got = source.read(block)) all.append(block.data(), got);
  return all;
}

struct Pipe {
  Pipe() {
    if (pipe(ends.data()) != 0) ADD_FAILURE() << "no pipe";
  }
  void write_all(std::string_view bytes) const {
    ASSERT_EQ(write(ends[1], bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  std::array<int, 2> ends{};
};

TEST(ByteSource, CountsWhatIsAheadOfAFilesPosition) {
  const TemporaryDirectory directory;
  const int descriptor = open(directory.write("words", "0123456789").c_str(), O_RDONLY);
  ASSERT_EQ(lseek(descriptor, 4, SEEK_SET), 4);
  FileByteSource source(descriptor, Ownership::kOwned, "words");
  EXPECT_EQ(source.bytes_total(), 6u);
  EXPECT_EQ(read_to_end(source, 4), "456789");
}

TEST(ByteSource, ClosesOnlyWhatItOwns) {
  const Pipe pipe;
  { FileByteSource borrowed(pipe.ends[0], Ownership::kBorrowed, "pipe"); }
  EXPECT_NE(fcntl(pipe.ends[0], F_GETFD), -1);
  { FileByteSource owned(pipe.ends[0], Ownership::kOwned, "pipe"); }
  EXPECT_EQ(fcntl(pipe.ends[0], F_GETFD), -1);
  close(pipe.ends[1]);
}

TEST(ByteSource, ReadsOnAfterASignal) {
  struct sigaction action = {};
  struct sigaction previous = {};
  action.sa_handler = [](int) {};  // and no SA_RESTART: a waiting read returns EINTR
  ASSERT_EQ(sigaction(SIGUSR1, &action, &previous), 0);
  const Pipe pipe;
  std::thread writer([&, reader = pthread_self()] {
    for (int i = 0; i < 10; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      pthread_kill(reader, SIGUSR1);
    }
    pipe.write_all("late");
    close(pipe.ends[1]);
  });
  FileByteSource source(pipe.ends[0], Ownership::kOwned, "pipe");
  std::string all;
  EXPECT_EQ(error_of([&] { all = read_to_end(source, 1024); }), "");
  EXPECT_EQ(all, "late");
  writer.join();
  sigaction(SIGUSR1, &previous, nullptr);
}

TEST(ByteSource, SaysThatAFileMayNotBeRead) {
  const TemporaryDirectory directory;
  const std::string path = directory.write("secret", "");
  std::filesystem::permissions(path, std::filesystem::perms::none);
  // Root may read everything, so root becomes the user `nobody` for a moment.
  constexpr uid_t kNobody = 65534;
  const uid_t self = geteuid();
  if (self == 0 && seteuid(kNobody) != 0) GTEST_SKIP() << "root cannot become another user";
  const std::string error = error_of([&] { open_file(path); });
  ASSERT_EQ(seteuid(self), 0);
  EXPECT_EQ(error, path + ": Permission denied; expected a readable file");
}

TEST(ByteSource, RefusesADescriptorThatIsNotOpen) {
  EXPECT_EQ(error_of([] { FileByteSource(-1, Ownership::kBorrowed, "standard input"); }),
            "standard input: Bad file descriptor; expected a readable file");
}

const InputPlace kPlace{"words.tsv", "line", 3};

std::string decode(TextEncoding encoding, std::string_view text) {
  FieldDecoder decoder = value_decoder(encoding);
  return std::string(decoder.decode(text, kPlace));
}

std::string error(TextEncoding encoding, std::string_view text) {
  return error_of([&] { decode(encoding, text); });
}

TEST(TextEncoding, RefusesWhatIsNotUtf8) {
  const std::string right = "; expected UTF-8, or bytes written as hex or base64";
  const std::string at_3 = "words.tsv, line 3: value is not UTF-8 at byte 3 ";
  EXPECT_EQ(error(TextEncoding::kUtf8,
                  "ab\xFF"
                  "c"),
            at_3 + "(\"\\xff\")" + right);
  EXPECT_EQ(error(TextEncoding::kUtf8, "ab\xC0\xAF"), at_3 + "(\"\\xc0\")" + right) << "overlong";
  EXPECT_EQ(error(TextEncoding::kUtf8, "ab\xED\xA0\x80"), at_3 + "(\"\\xed\")" + right)
      << "surrogate";
  EXPECT_EQ(error(TextEncoding::kUtf8, "ab\xF4\x90\x80\x80"), at_3 + "(\"\\xf4\")" + right)
      << "beyond U+10FFFF";
  EXPECT_EQ(error(TextEncoding::kUtf8, "ab\xC3"), at_3 + "(\"\\xc3\")" + right) << "cut short";
}

TEST(TextEncoding, RefusesWhatIsNotHex) {
  EXPECT_EQ(error(TextEncoding::kHex, "12g4"),
            "words.tsv, line 3: value is not hex at byte 3 (\"g\"); "
            "expected digits 0-9, a-f or A-F");
  EXPECT_EQ(error(TextEncoding::kHex, "12\xC3\xA9"),
            "words.tsv, line 3: value is not hex at byte 3 (\"\xC3\xA9\"); "
            "expected digits 0-9, a-f or A-F");
  EXPECT_EQ(error(TextEncoding::kHex, "0x12"),
            "words.tsv, line 3: value is not hex at byte 2 (\"x\"); "
            "expected digits 0-9, a-f or A-F");
  EXPECT_EQ(error(TextEncoding::kHex, "12 34"),
            "words.tsv, line 3: value is not hex at byte 3 (\" \"); "
            "expected digits 0-9, a-f or A-F");
  EXPECT_EQ(error(TextEncoding::kHex, "123"),
            "words.tsv, line 3: value has an odd number of hex digits (3); "
            "expected two for each byte");
}

TEST(TextEncoding, RefusesWhatIsNotBase64) {
  const auto bad_at = [](size_t byte, const std::string& character) {
    return "words.tsv, line 3: value is not base64 at byte " + std::to_string(byte) + " (\"" +
           character + "\"); expected characters A-Z, a-z, 0-9, + and /, with = only at the end";
  };
  EXPECT_EQ(error(TextEncoding::kBase64, "Zm-v"), bad_at(3, "-")) << "the URL alphabet";
  EXPECT_EQ(error(TextEncoding::kBase64, "Zm9v Zm9v"), bad_at(5, " "));
  EXPECT_EQ(error(TextEncoding::kBase64, "Zm9v\n"), bad_at(5, "\\x0a"));
  EXPECT_EQ(error(TextEncoding::kBase64, "\0AAA"sv), bad_at(1, "\\x00"));
  EXPECT_EQ(error(TextEncoding::kBase64, "Z==="), bad_at(2, "="));
  EXPECT_EQ(error(TextEncoding::kBase64, "Zg==Zg=="), bad_at(3, "="));
  const auto size = [](size_t characters) {
    return "words.tsv, line 3: value has " + std::to_string(characters) +
           " base64 characters; expected a multiple of 4, padded with =";
  };
  EXPECT_EQ(error(TextEncoding::kBase64, "Zg"), size(2));
  EXPECT_EQ(error(TextEncoding::kBase64, "Zg="), size(3));
  EXPECT_EQ(error(TextEncoding::kBase64, "Zm9v="), size(5));
  EXPECT_EQ(error(TextEncoding::kBase64, "="), size(1));
  const auto unused = [](size_t byte, const std::string& character) {
    return "words.tsv, line 3: value has unused bits that are not zero in its last base64 "
           "character at byte " +
           std::to_string(byte) + " (\"" + character + "\"); expected the canonical encoding";
  };
  EXPECT_EQ(error(TextEncoding::kBase64, "Zh=="), unused(2, "h"));
  EXPECT_EQ(error(TextEncoding::kBase64, "Zm9="), unused(3, "9"));
  EXPECT_EQ(error(TextEncoding::kBase64, "===="), bad_at(1, "="));
}

// The decoded size counts, whatever the text looks like.
TEST(TextEncoding, LimitsTheDecodedSize) {
  const auto error_at = [](TextEncoding encoding, const std::string& text) {
    FieldDecoder decoder("key", encoding, 4);
    return error_of([&] { decoder.decode(text, kPlace); });
  };
  const std::string five = "words.tsv, line 3: key of 5 bytes; expected at most 4";
  EXPECT_EQ(error_at(TextEncoding::kUtf8, "abcd"), "");
  EXPECT_EQ(error_at(TextEncoding::kUtf8, "abcde"), five);
  EXPECT_EQ(error_at(TextEncoding::kHex, "00112233"), "");
  EXPECT_EQ(error_at(TextEncoding::kHex, "0011223344"), five);
  EXPECT_EQ(error_at(TextEncoding::kBase64, "AAAAAA=="), "");
  EXPECT_EQ(error_at(TextEncoding::kBase64, "AAAAAAA="), five);
  EXPECT_EQ(error_at(TextEncoding::kBase64, "AAAAAAAA"),
            "words.tsv, line 3: key of 6 bytes; expected at most 4");
  const FieldDecoder decoder("key", TextEncoding::kHex, 4);
  EXPECT_EQ(decoder.accept("zzzz", kPlace), "zzzz");
  EXPECT_EQ(error_of([&] { decoder.accept("zzzzz", kPlace); }), five);
}

TEST(InputError, NamesThePlaceOnOneLine) {
  EXPECT_EQ(error_of([] {
              fail_input(InputPlace{"words.tsv", "line", 17}, "wrong; right");
            }),
            "words.tsv, line 17: wrong; right");
  EXPECT_EQ(error_of([] { fail_input("a\nb.tsv", "wrong; right"); }), "a\\x0ab.tsv: wrong; right");
  const std::string long_name(500, 'n');
  EXPECT_EQ(error_of([&] { fail_input(long_name, "wrong"); }), long_name + ": wrong");
}

}  // namespace
}  // namespace blindfuse
