#include "src/program/printable.h"

#include <gtest/gtest.h>

namespace blindfuse {
namespace {

using namespace std::string_view_literals;

TEST(Printable, ShowsPrintableTextAsItIs) {
  EXPECT_EQ(printable("key = \xC3\xA9, \xE2\x82\xAC, \xF0\x9F\x98\x80"),
            "key = \xC3\xA9, \xE2\x82\xAC, \xF0\x9F\x98\x80");
}

TEST(Printable, EscapesWhatIsNotPrintable) {
  EXPECT_EQ(printable("a\0b\n\r\t\x1B[2J\x7F"sv), "a\\x00b\\x0a\\x0d\\x09\\x1b[2J\\x7f");
  EXPECT_EQ(printable("\xFF\xC3"), "\\xff\\xc3") << "not UTF-8";
  EXPECT_EQ(printable("\xC2\x9B"), "\\xc2\\x9b") << "a C1 control character";
  EXPECT_EQ(printable("\xE2\x80\xAE"), "\\xe2\\x80\\xae") << "right-to-left override";
  EXPECT_EQ(printable("\xE2\x80\xA8"), "\\xe2\\x80\\xa8") << "line separator";
  EXPECT_EQ(printable("\xEF\xBB\xBF"), "\\xef\\xbb\\xbf") << "byte order mark";
}

TEST(Printable, CutsLongTextBetweenCharacters) {
  EXPECT_EQ(printable(std::string(60, 'a')), std::string(60, 'a'));
  EXPECT_EQ(printable(std::string(61, 'a')), std::string(60, 'a') + "...");
  EXPECT_EQ(printable("\xC3\xA9\xC3\xA9", 3), "\xC3\xA9...");
  EXPECT_EQ(printable(std::string(100, '\n'), 10), "\\x0a\\x0a...");
  EXPECT_EQ(quoted("abc", 2), "\"ab...\"");
}

}  // namespace
}  // namespace blindfuse
