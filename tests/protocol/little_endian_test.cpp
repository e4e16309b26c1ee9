#include "src/arithmetic/little_endian.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

namespace blindfuse {
namespace {

constexpr std::array<uint8_t, 9> kBytes = {0xff, 1, 2, 3, 4, 5, 6, 7, 0x80};

// From the second byte on, so that nothing is aligned.
TEST(LittleEndian, LoadsTheLowestByteFirst) {
  EXPECT_EQ(load_le<uint8_t>(kBytes.data() + 1), 0x01u);
  EXPECT_EQ(load_le<uint16_t>(kBytes.data() + 1), 0x0201u);
  EXPECT_EQ(load_le<uint32_t>(kBytes.data() + 1), 0x04030201u);
  EXPECT_EQ(load_le<uint64_t>(kBytes.data() + 1), 0x8007060504030201u);
}

TEST(LittleEndian, StoresWhatItLoads) {
  std::array<uint8_t, 10> bytes{};
  store_le(bytes.data() + 1, uint64_t{0x8007060504030201});
  for (size_t i = 1; i < kBytes.size(); ++i) EXPECT_EQ(bytes[i], kBytes[i]);
  EXPECT_EQ(bytes.front(), 0);
  EXPECT_EQ(bytes.back(), 0);
  store_le(bytes.data() + 2, uint16_t{0xbbaa});
  EXPECT_EQ(bytes[2], 0xaa);
  EXPECT_EQ(bytes[3], 0xbb);
  EXPECT_EQ(bytes[4], 4);
}

}  // namespace
}  // namespace blindfuse
