// Bodies by hand: every expectation is written out, none is computed by a second reader.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "host/server/http/request_head.h"
#include "host/server/http/response.h"

namespace blindfuse::http {
namespace {

constexpr uint64_t kBytesMax = 100;

RequestHead chunked_head() {
  RequestHead head;
  head.chunked = true;
  return head;
}

RequestHead length_head(uint64_t length) {
  RequestHead head;
  head.content_length = length;
  return head;
}

std::string body_of(const BodyReader& reader) {
  return {reader.bytes().data(), reader.bytes().size()};
}

// In pieces of `step` bytes. What follows the body is left alone.
size_t feed(BodyReader& reader, std::string_view bytes, size_t step) {
  size_t taken = 0;
  while (taken < bytes.size() && !reader.is_whole()) {
    const size_t now = reader.take(bytes.substr(taken, step));
    EXPECT_GT(now, 0u) << "a reader that takes nothing would be asked for ever";
    if (now == 0) break;
    taken += now;
  }
  return taken;
}

// The status of the refusal; 0 without one.
int refusal_of(std::string_view chunks, size_t step, uint64_t bytes_max = kBytesMax) {
  BodyReader reader(chunked_head(), bytes_max);
  try {
    feed(reader, chunks, step);
  } catch (const Error& error) {
    return error.status();
  }
  return 0;
}

void expect_body(std::string_view chunks, std::string_view body) {
  const std::string with_next = std::string(chunks) + "GET / HTTP/1.1\r\n";
  for (size_t step = 1; step <= with_next.size(); ++step) {
    BodyReader reader(chunked_head(), kBytesMax);
    EXPECT_EQ(feed(reader, with_next, step), chunks.size()) << chunks << " by " << step;
    EXPECT_TRUE(reader.is_whole()) << chunks << " by " << step;
    EXPECT_EQ(body_of(reader), body) << chunks << " by " << step;
    EXPECT_EQ(reader.take("more"), 0u);
    EXPECT_TRUE(reader.room().empty());
  }
  // In two pieces, at every place.
  for (size_t split = 0; split <= chunks.size(); ++split) {
    BodyReader reader(chunked_head(), kBytesMax);
    feed(reader, chunks.substr(0, split), kBytesMax * 10);
    EXPECT_EQ(reader.is_whole(), split == chunks.size());
    feed(reader, chunks.substr(split), kBytesMax * 10);
    EXPECT_TRUE(reader.is_whole());
    EXPECT_EQ(body_of(reader), body);
  }
}

void expect_refusal(std::string_view chunks, int status) {
  for (size_t step = 1; step <= chunks.size(); ++step) {
    EXPECT_EQ(refusal_of(chunks, step), status) << chunks.substr(0, 80) << " by " << step;
  }
}

TEST(BodyReader, TakesTheLengthThatWasAnnounced) {
  const std::string bytes = "0123456789next";
  for (size_t step = 1; step <= bytes.size(); ++step) {
    BodyReader reader(length_head(10), kBytesMax);
    EXPECT_FALSE(reader.is_whole());
    EXPECT_EQ(feed(reader, bytes, step), 10u);
    EXPECT_TRUE(reader.is_whole());
    EXPECT_EQ(body_of(reader), "0123456789");
    EXPECT_TRUE(reader.room().empty());
  }
}

TEST(BodyReader, IsWholeAtOnceWithoutBytes) {
  EXPECT_TRUE(BodyReader(RequestHead(), kBytesMax).is_whole());
  BodyReader reader(length_head(0), kBytesMax);
  EXPECT_TRUE(reader.is_whole());
  EXPECT_EQ(reader.take("x"), 0u);
  EXPECT_TRUE(reader.room().empty());
}

TEST(BodyReader, IsFilledWhereItsBytesGo) {
  BodyReader reader(length_head(10), kBytesMax);
  EXPECT_EQ(reader.take("012"), 3u);
  std::ranges::copy(std::string_view("345"), reader.room().begin());
  EXPECT_EQ(reader.room().size(), 7u);
  reader.fill(3);
  EXPECT_EQ(reader.take("67"), 2u);
  EXPECT_EQ(reader.room().size(), 2u);
  std::ranges::copy(std::string_view("89"), reader.room().begin());
  reader.fill(2);
  EXPECT_TRUE(reader.is_whole());
  EXPECT_EQ(body_of(reader), "0123456789");
}

TEST(BodyReader, PutsChunksTogether) {
  expect_body("0\r\n\r\n", "");
  expect_body("5\r\nhello\r\n0\r\n\r\n", "hello");
  expect_body("1\r\na\r\n2\r\nbc\r\n3\r\ndef\r\n0\r\n\r\n", "abcdef");
  expect_body("00000005\r\nhello\r\n000\r\n\r\n", "hello");
  expect_body("a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n", "01234567890123456789");
  // Extensions and trailers are passed over.
  expect_body("5;name=value\r\nhello\r\n0;last\r\n\r\n", "hello");
  expect_body("5 ; name=\"quoted\"\r\nhello\r\n0\r\n\r\n", "hello");
  expect_body("5\r\nhello\r\n0\r\nDigest: x\r\nOther: y\r\n\r\n", "hello");
  // What looks like framing within a chunk is none.
  expect_body("7\r\n\r\n0\r\n\r\n\r\n0\r\n\r\n", "\r\n0\r\n\r\n");
}

TEST(BodyReader, TakesExactlyAsMuchAsItMay) {
  const std::string whole(kBytesMax, 'x');
  expect_body("64\r\n" + whole + "\r\n0\r\n\r\n", whole);
  EXPECT_EQ(refusal_of("1\r\n", 3, 0), 413);
  EXPECT_EQ(refusal_of("0\r\n\r\n", 3, 0), 0);
  expect_refusal("65\r\n", 413);
  expect_refusal("64\r\n" + whole + "\r\n1\r\n", 413);
  expect_refusal("FFFFFFFFFFFFFFFF\r\n", 413);
  expect_refusal("5\r\nhello\r\nFFFFFFFFFFFFFFFF\r\n", 413);
  // Beyond 64 bits.
  expect_refusal("10000000000000005\r\nhello", 413);
  expect_refusal("FFFFFFFFFFFFFFFFFFFFFFFF\r\n", 413);
}

TEST(BodyReader, RefusesBrokenFraming) {
  for (const char* chunks :
       {// Sizes that are none.
        "\r\n", "x\r\n", "-1\r\n", "+5\r\n", " 5\r\n", "0x5\r\nhello\r\n", "5h\r\nhello\r\n",
        ";name\r\n", "5,5\r\n", "5\thello\r\n", "g\r\n", "\xd9\xa5\r\n",
        // Lines without CR.
        "5\nhello\r\n0\r\n\r\n", "5\r\nhello\n0\r\n\r\n", "5\r\nhello\r\n0\n\r\n",
        "5\r\nhello\r\n0\r\n\n", "0\r\nTrailer: x\n\r\n",
        // Chunks that are longer than they say.
        "5\r\nhello!\r\n0\r\n\r\n", "5\r\nhellohello\r\n", "5\r\nhello\r\r\n0\r\n\r\n"}) {
    expect_refusal(chunks, 400);
  }
  expect_refusal(std::string_view("5\0\r\n", 4), 400);
}

// No client makes it keep an endless line, nor read framing forever.
TEST(BodyReader, BoundsItsFraming) {
  const std::string long_extension = "5;" + std::string(10'000, 'x');
  const std::string long_trailer = "0\r\n" + std::string(10'000, 'x');
  std::string tiny_chunks;
  for (int i = 0; i < 100; ++i) tiny_chunks += "1;" + std::string(4000, 'x') + "\r\na\r\n";
  std::string trailers = "0\r\n";
  for (int i = 0; i < 100; ++i) trailers += std::string(4000, 'x') + "\r\n";
  for (const size_t step : {1, 7, 1000, 1'000'000}) {
    EXPECT_EQ(refusal_of(long_extension, step), 400);
    EXPECT_EQ(refusal_of(long_trailer, step), 400);
    EXPECT_EQ(refusal_of(tiny_chunks, step), 413);
    EXPECT_EQ(refusal_of(trailers, step), 413);
  }
}

// docs/HTTP_API.md: 4,096 bytes a line, its end included.
TEST(BodyReader, BoundsALineOfItsFraming) {
  const auto line = [](const std::string& begin, size_t size) {
    return begin + std::string(size - begin.size() - 2, 'x') + "\r\n";
  };
  EXPECT_EQ(refusal_of(line("1;", 4'096) + "a\r\n0\r\n" + line("T:", 4'096) + "\r\n", 1'000), 0);
  EXPECT_EQ(refusal_of(line("1;", 4'097), 1'000), 400);
  EXPECT_EQ(refusal_of("0\r\n" + line("T:", 4'097), 1'000), 400);
}

// A byte a chunk is a body like any other.
TEST(BodyReader, TakesABodyInChunksOfOneByte) {
  constexpr uint64_t kMany = 10'000;
  std::string chunks;
  for (uint64_t i = 0; i < kMany; ++i) chunks += std::string("1\r\n") + char('a' + i % 26) + "\r\n";
  chunks += "0\r\n\r\n";
  BodyReader reader(chunked_head(), kMany);
  EXPECT_EQ(feed(reader, chunks, 4096), chunks.size());
  ASSERT_TRUE(reader.is_whole());
  const std::string body = body_of(reader);
  ASSERT_EQ(body.size(), kMany);
  EXPECT_EQ(body.substr(0, 28), "abcdefghijklmnopqrstuvwxyzab");
}

// Texts in several places of memory.
class Texts final : public Body {
 public:
  explicit Texts(std::vector<std::string> texts) : texts_(std::move(texts)) {}

  uint64_t size() const override {
    uint64_t size = 0;
    for (const std::string& text : texts_) size += text.size();
    return size;
  }
  std::span<const uint8_t> from(uint64_t offset) const override {
    size_t i = 0;
    for (; offset >= texts_[i].size(); ++i) offset -= texts_[i].size();
    return std::span(reinterpret_cast<const uint8_t*>(texts_[i].data()), texts_[i].size())
        .subspan(offset);
  }
  const void* memory() const override { return this; }

 private:
  const std::vector<std::string> texts_;
};

Response response_of(std::vector<std::string> texts, uint64_t first = 0, uint64_t cut = 0) {
  const auto body = std::make_shared<Texts>(std::move(texts));
  return {.range = {body, first, body->size() - first - cut}};
}

// Everything, `step` bytes at a time, with room for `room` bytes to put small pieces together.
std::string written(Output output, size_t room, size_t step) {
  std::vector<char> gathered(room);
  std::string all;
  while (!output.is_empty()) {
    const std::string_view next = output.next(gathered);
    EXPECT_FALSE(next.empty());
    if (next.empty()) break;
    const size_t count = std::min(step, next.size());
    all.append(next.substr(0, count));
    output.advance(count);
    EXPECT_EQ(output.bytes_sent(), all.size());
  }
  return all;
}

TEST(Output, IsHeadAndBodyWhateverIsTakenAtOnce) {
  const std::string long_one(40, 'l');
  for (const size_t room : {1, 3, 10, 1000}) {
    for (const size_t step : {1, 2, 7, 1000}) {
      EXPECT_EQ(written(Output("head", {.text = "text"}, false), room, step), "headtext");
      EXPECT_EQ(written(Output("head", {.text = "text"}, true), room, step), "head");
      EXPECT_EQ(written(Output("head", response_of({"one", long_one, "two"}), false), room, step),
                "headone" + long_one + "two");
      EXPECT_EQ(
          written(Output("head", response_of({"one", long_one, "two"}, 2, 1), false), room, step),
          "heade" + long_one + "tw");
      EXPECT_EQ(written(Output("head", response_of({"one", "two"}, 4, 1), false), room, step),
                "headw");
      EXPECT_EQ(written(Output("head", {}, false), room, step), "head");
    }
  }
}

TEST(Output, IsMovedWithoutACopyOfItsBody) {
  Output first("head", {.text = std::string(100, 't')}, false);
  std::vector<char> gathered(50);
  first.advance(4);
  const char* text = first.next(gathered).data();
  Output second = std::move(first);
  EXPECT_EQ(second.next(gathered).data(), text);
}

TEST(Output, CopiesNoLongPart) {
  const Response response = response_of({std::string(100, 'p')});
  Output output("head", response, false);
  std::vector<char> gathered(50);
  EXPECT_EQ(output.next(gathered), "head");
  output.advance(4);
  EXPECT_EQ(static_cast<const void*>(output.next(gathered).data()),
            response.range.body->from(0).data());
}

}  // namespace
}  // namespace blindfuse::http
