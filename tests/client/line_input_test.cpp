#include "client/line_input.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string_view>

#include "src/base/errors.h"
#include "src/system/file.h"

namespace blindfuse {
namespace {

using Lines = std::vector<std::string>;

class LineInputTest : public testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    read_end_ = FileDescriptor(ends[0]);
    write_end_ = FileDescriptor(ends[1]);
  }
  void send(std::string_view text) {
    ASSERT_EQ(write(write_end_.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void end() { write_end_ = FileDescriptor(); }

  FileDescriptor read_end_, write_end_;
};

TEST_F(LineInputTest, GivesWhatHasArrivedWithoutWaitingForMore) {
  LineInput input(read_end_.get(), 100);
  send("one\n");
  EXPECT_EQ(input.next(8), Lines({"one"}));
  send("two\nthree\r\nfo");
  EXPECT_EQ(input.next(8), Lines({"two", "three"}));
  send("ur\n\nsix");
  EXPECT_EQ(input.next(1), Lines({"four"}));
  EXPECT_EQ(input.next(1), Lines({""}));
  end();
  EXPECT_EQ(input.next(8), Lines({"six"}));
  EXPECT_EQ(input.next(8), Lines());
}

TEST_F(LineInputTest, TakesNoMoreThanAskedFor) {
  LineInput input(read_end_.get(), 100);
  send("1\n2\n3\n4\n5\n");
  end();
  EXPECT_EQ(input.next(3), Lines({"1", "2", "3"}));
  EXPECT_EQ(input.next(3), Lines({"4", "5"}));
  EXPECT_EQ(input.next(3), Lines());
}

TEST_F(LineInputTest, RefusesALineThatIsTooLongBeforeItEnds) {
  LineInput input(read_end_.get(), 10);
  send("0123456789\r\n");
  EXPECT_EQ(input.next(1), Lines({"0123456789"}));
  send("0123456789abc");
  EXPECT_THROW(input.next(1), InputError);
}

TEST_F(LineInputTest, AnEmptyInputHasNoLines) {
  end();
  LineInput input(read_end_.get(), 10);
  EXPECT_EQ(input.next(4), Lines());
}

TEST(LineInput, SaysWhyItCannotRead) {
  LineInput input(-1, 10);
  EXPECT_THROW(input.next(1), InputError);
}

}  // namespace
}  // namespace blindfuse
