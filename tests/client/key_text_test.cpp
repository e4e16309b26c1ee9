#include "client/key_text.h"

#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <string_view>
#include <thread>

#include "src/base/errors.h"
#include "src/base/utf8.h"
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
  // Waits until the reader has read all that was sent. False after a minute.
  bool was_emptied() const {
    for (int i = 0; i < 60'000; ++i) {
      int bytes = 0;
      if (ioctl(read_end_.get(), FIONREAD, &bytes) == 0 && bytes == 0) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }

  FileDescriptor read_end_, write_end_;
};

TEST_F(LineInputTest, GivesWhatHasArrivedWithoutWaitingForMore) {
  LineInput input(read_end_.get(), 100);
  send("one\n");
  EXPECT_EQ(input.next_arrived(8), Lines({"one"}));
  send("two\nthree\r\nfo");
  EXPECT_EQ(input.next_arrived(8), Lines({"two", "three"}));
  send("ur\n\nsix");
  EXPECT_EQ(input.next_arrived(1), Lines({"four"}));
  end();
  EXPECT_EQ(input.next_arrived(8), Lines({"six"}));
  EXPECT_EQ(input.next_arrived(8), Lines());
}

TEST_F(LineInputTest, WaitsForAllThatIsWantedOrTheEnd) {
  LineInput input(read_end_.get(), 100);
  send("1\n2\n");
  std::thread writer([this] {
    EXPECT_TRUE(was_emptied());  // so the reader has taken what was there, and wants more
    send("3\n4\n");
    EXPECT_TRUE(was_emptied());
    end();
  });
  EXPECT_EQ(input.next(3), Lines({"1", "2", "3"}));
  EXPECT_EQ(input.next(3), Lines({"4"}));
  EXPECT_EQ(input.next(3), Lines());
  writer.join();
}

TEST_F(LineInputTest, SkipsBlankLines) {
  LineInput input(read_end_.get(), 100);
  send("\n\r\none\n\n\n two \n\n");
  EXPECT_EQ(input.next_arrived(1), Lines({"one"}));
  end();
  EXPECT_EQ(input.next(8), Lines({" two "}));
}

TEST_F(LineInputTest, SkipsAByteOrderMarkHoweverItArrives) {
  LineInput input(read_end_.get(), 4);
  std::thread writer([this] {
    send("\xef");
    EXPECT_TRUE(was_emptied());
    send("\xbb");
    EXPECT_TRUE(was_emptied());
    send("\xbfwren\n\xef\xbb\xbfx");
    EXPECT_TRUE(was_emptied());
    end();
  });
  EXPECT_EQ(input.next_arrived(1), Lines({"wren"}));
  EXPECT_EQ(input.next(8), Lines({"\xef\xbb\xbfx"}));  // in the middle it is text
  writer.join();
}

TEST_F(LineInputTest, ABeginningOfAByteOrderMarkIsText) {
  send("\xef\xbb");
  end();
  LineInput input(read_end_.get(), 10);
  EXPECT_EQ(input.next(8), Lines({"\xef\xbb"}));
  EXPECT_EQ(input.next(8), Lines());
}

TEST_F(LineInputTest, RefusesALineThatIsTooLongBeforeItEnds) {
  LineInput input(read_end_.get(), 10);
  send("0123456789\r\n");
  EXPECT_EQ(input.next(1), Lines({"0123456789"}));
  send("0123456789abc");
  EXPECT_THROW(input.next(1), InputError);
}

TEST(LineInput, SaysWhyItCannotRead) {
  LineInput input(-1, 10);
  EXPECT_THROW(input.next(1), InputError);
}

}  // namespace
}  // namespace blindfuse
