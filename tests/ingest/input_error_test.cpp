#include "host/ingest/input_error.h"

#include "tests/ingest/ingest_testing.h"

namespace blindfuse {
namespace {

using namespace ingest_testing;

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
