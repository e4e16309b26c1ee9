#include "host/server/routes/downloads.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace blindfuse {
namespace {

constexpr size_t kParts = 7;
constexpr size_t kPartBytes = 5;

std::shared_ptr<const EpochDownloads> make_downloads() {
  EpochDownloads downloads;
  for (size_t i = 0; i < kParts; ++i) {
    downloads.hints.push_back(
        std::make_shared<const std::vector<uint8_t>>(kPartBytes, static_cast<uint8_t>('a' + i)));
  }
  return std::make_shared<const EpochDownloads>(std::move(downloads));
}

std::string text_of(const PartSelection& selection) {
  std::string text;
  for (const HintParts& parts : selection) {
    for (uint32_t i = parts.first; i <= parts.last; ++i) {
      text.append(kPartBytes, static_cast<char>('a' + i));
    }
  }
  return text;
}

TEST(HintBodyTest, IsThePartsInTheirOrderFromWhereverItIsRead) {
  const PartSelection selections[] = {
      {{0, 6}}, {{3, 3}}, {{4, 6}, {0, 1}}, {{6, 6}, {0, 0}, {2, 3}}};
  for (const PartSelection& selection : selections) {
    const HintBody body(make_downloads(), selection);
    const std::string expected = text_of(selection);
    ASSERT_EQ(body.size(), expected.size());
    for (uint64_t offset = 0; offset < body.size(); ++offset) {
      const auto bytes = body.from(offset);
      ASSERT_GE(bytes.size(), 1u);
      ASSERT_LE(offset + bytes.size(), body.size());
      EXPECT_EQ(std::string(bytes.begin(), bytes.end()), expected.substr(offset, bytes.size()));
    }
  }
}

TEST(HintBodyTest, KeepsTheDownloadsInMemory) {
  auto downloads = make_downloads();
  const std::weak_ptr<const EpochDownloads> watched = downloads;
  auto body = std::make_unique<HintBody>(downloads, PartSelection{{0, 0}});
  EXPECT_EQ(body->memory(), downloads.get());
  downloads.reset();
  EXPECT_FALSE(watched.expired());
  body.reset();
  EXPECT_TRUE(watched.expired());
}

}  // namespace
}  // namespace blindfuse
