#include "host/cpu/packing/packing_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/arithmetic/little_endian.h"
#include "src/arithmetic/ring/prime_field.h"
#include "tests/support.h"

namespace blindfuse {
namespace {

using ::testing::HasSubstr;

TEST(PackingKeys, RepeatTheBeginningOfEachHalf) {
  std::vector<uint8_t> bytes(ring::kKeyBytes);
  for (size_t i = 0; i < ring::kKeyWords; ++i)
    store_le(bytes.data() + 4 * i, static_cast<uint32_t>(i));
  const PackingKeys keys = PackingKeys::read(bytes);
  for (size_t half = 0; half < ring::kKeyWords / ring::kOrbit; ++half) {
    for (size_t i = 0; i < PackingKeys::kHalfWords; ++i) {
      ASSERT_EQ(keys.words()[half * PackingKeys::kHalfWords + i],
                half * ring::kOrbit + i % ring::kOrbit);
    }
  }
}

TEST(PackingKeys, OfAnotherLengthAreRefused) {
  for (const size_t size :
       {size_t{0}, ring::kKeyBytes - 1, ring::kKeyBytes + 1, 2 * ring::kKeyBytes}) {
    const std::vector<uint8_t> bytes(size);
    EXPECT_THAT(support::input_error_of([&] { PackingKeys::read(bytes); }),
                HasSubstr("24576 bytes"));
  }
}

TEST(PackingKeys, WordsBeyondTheModulusAreRefused) {
  std::vector<uint8_t> bytes(ring::kKeyBytes);
  const auto with_last = [&](uint32_t word) {
    store_le(bytes.data() + ring::kKeyBytes - 4, word);
    return support::input_error_of([&] { PackingKeys::read(bytes); });
  };
  EXPECT_EQ(with_last(ring::kPackingModulus - 1), "");
  EXPECT_THAT(with_last(ring::kPackingModulus), HasSubstr("word 6143"));
  EXPECT_THAT(with_last(0xffffffff), HasSubstr("below 4294955009"));
}

}  // namespace
}  // namespace blindfuse
