#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "host/server/http/output.h"

namespace blindfuse::http {
namespace {

std::span<const uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// Everything, `step` bytes at a time, with room for `room` bytes to put small pieces together.
std::string written(Output output, size_t room, size_t step) {
  std::vector<char> gathered(room);
  std::string all;
  uint64_t left = output.bytes_left();
  while (!output.is_empty()) {
    const std::string_view next = output.next(gathered);
    EXPECT_FALSE(next.empty());
    if (next.empty()) break;
    const size_t count = std::min(step, next.size());
    all.append(next.substr(0, count));
    output.advance(count);
    left -= count;
    EXPECT_EQ(output.bytes_left(), left);
  }
  EXPECT_EQ(left, 0u);
  return all;
}

TEST(Output, IsHeadAndBodyWhateverIsTakenAtOnce) {
  const std::string one = "one";
  const std::string long_one(40, 'l');
  const std::string empty;
  for (const size_t room : {1, 3, 10, 1000}) {
    for (const size_t step : {1, 2, 7, 1000}) {
      EXPECT_EQ(written(Output("head", {.text = "text"}, false), room, step), "headtext");
      EXPECT_EQ(written(Output("head", {.text = "text"}, true), room, step), "head");
      const Response parts{.parts = {bytes_of(one), bytes_of(empty), bytes_of(long_one),
                                     bytes_of(one), bytes_of(empty)}};
      EXPECT_EQ(written(Output("head", parts, false), room, step), "headone" + long_one + "one");
      EXPECT_EQ(written(Output("head", {}, false), room, step), "head");
    }
  }
}

TEST(Output, CopiesNoLongPart) {
  const std::string part(100, 'p');
  Output output("head", {.parts = {bytes_of(part)}}, false);
  std::vector<char> gathered(50);
  EXPECT_EQ(output.next(gathered), "head");
  output.advance(4);
  EXPECT_EQ(output.next(gathered).data(), part.data());
}

}  // namespace
}  // namespace blindfuse::http
