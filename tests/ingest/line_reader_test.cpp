#include "host/ingest/line_reader.h"

#include <random>

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

}  // namespace
}  // namespace blindfuse
