#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "host/server/http/response.h"

namespace blindfuse::http {
namespace {

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
