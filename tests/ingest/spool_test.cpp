#include "host/ingest/spool.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "src/arithmetic/fuse_slots.h"
#include "src/system/file.h"
#include "tests/support.h"

namespace blindfuse {
namespace {

// Over a file without a name.
Spool new_spool(DuplicatePolicy policy) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path();
  std::filesystem::path path;
  FileDescriptor file = create_temporary_file(folder, path);
  std::filesystem::remove(path);
  return {std::move(file), folder, policy};
}

using support::SeededRandom;

// All in one partition.
KeyHash hash_of(uint64_t key) { return {key, mix64(key), {}}; }

SpoolEntry entry_of(uint64_t key, uint64_t place, const std::string& value) {
  SpoolEntry entry;
  entry.hash = hash_of(key);
  entry.place = place;
  entry.value = value;
  return entry;
}

uint64_t entries_on_disk(const Spool& spool) {
  uint64_t count = 0;
  spool.visit(0, [&](const SpoolEntry&, std::string_view) {
    ++count;
    return true;
  });
  return count;
}

class SpoolPolicy : public testing::TestWithParam<DuplicatePolicy> {
 protected:
  Spool spool_ = new_spool(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Policies, SpoolPolicy,
                         testing::Values(DuplicatePolicy::kFirst, DuplicatePolicy::kLast),
                         [](const auto& test) {
                           return test.param == DuplicatePolicy::kFirst ? "First" : "Last";
                         });

// Copies lie next to each other, within a block, and many blocks apart; values are empty, short,
// and longer than a block.
TEST_P(SpoolPolicy, KeepsOneOfEachKey) {
  SeededRandom random(1210);
  std::map<KeyHash, std::string> expected;
  constexpr uint64_t kPairs = 30'000;
  for (uint64_t place = 1; place <= kPairs; ++place) {
    const uint64_t key = random.below(2) == 0 ? random.below(3) : random.below(9'000);
    std::string value = std::to_string(place);
    value.resize(random.below(1000) == 0 ? 40'000 : random.below(30), 'v');
    spool_.append(entry_of(key, place, value));
    if (GetParam() == DuplicatePolicy::kFirst) {
      expected.try_emplace(hash_of(key), value);
    } else {
      expected[hash_of(key)] = value;
    }
  }
  spool_.seal();
  EXPECT_EQ(spool_.appended_count(), kPairs);
  EXPECT_FALSE(spool_.has_duplicate());
  std::map<KeyHash, std::string> kept;
  spool_.visit_kept(0, [&](const SpoolEntry& entry) {
    EXPECT_TRUE(kept.try_emplace(entry.hash, entry.value).second) << "a key twice";
  });
  EXPECT_TRUE(kept == expected);
  const SpoolPart part = spool_.load(0, 1);
  std::map<KeyHash, std::string> loaded;
  for (const SpoolEntry& entry : part.entries) loaded.try_emplace(entry.hash, entry.value);
  EXPECT_EQ(part.entries.size(), expected.size());
  EXPECT_TRUE(loaded == expected);
}

TEST_P(SpoolPolicy, AKeyThatComesAllTheTimeTakesNoRoom) {
  for (uint64_t place = 1; place <= 300'000; ++place) {
    spool_.append(entry_of(place % 3, place, "value"));
  }
  spool_.seal();
  // One block, of up to 32 KiB.
  EXPECT_LE(entries_on_disk(spool_), 700u);
}

TEST_P(SpoolPolicy, VisitsTheEntryThatCountsFirst) {
  for (uint64_t place = 1; place <= 5'000; ++place) {
    spool_.append(entry_of(place % 2'500, place, ""));
  }
  spool_.seal();
  std::vector<uint64_t> places;
  spool_.visit(0, [&](const SpoolEntry& entry, std::string_view) {
    places.push_back(entry.place);
    return places.size() < 4'000;
  });
  ASSERT_EQ(places.size(), 4'000u);
  for (uint64_t i = 0; i < places.size(); ++i) {
    ASSERT_EQ(places[i], GetParam() == DuplicatePolicy::kFirst ? i + 1 : 5'000 - i);
  }
}

TEST(Spool, MeetsADuplicateWithinABlockWhereItIsAnError) {
  Spool spool = new_spool(DuplicatePolicy::kError);
  uint64_t place = 0;
  while (!spool.has_duplicate() && place < 10'000) spool.append(entry_of(7, ++place, "value"));
  EXPECT_LE(place, 700u);
  spool.seal();
  EXPECT_EQ(entries_on_disk(spool), place) << "whoever names the places needs them";
}

TEST(Spool, KeepsTheStartsOfKeysWhereADuplicateIsAnError) {
  for (const auto policy : {DuplicatePolicy::kError, DuplicatePolicy::kFirst}) {
    Spool spool = new_spool(policy);
    const bool keeps = policy == DuplicatePolicy::kError;
    const std::vector<std::string> keys = {"", "short", std::string(70, 'k')};
    for (uint64_t i = 0; i < keys.size(); ++i) spool.append(entry_of(i, i, "value"), keys[i]);
    spool.seal();
    spool.visit(0, [&](const SpoolEntry& entry, std::string_view key) {
      EXPECT_EQ(key, keeps ? keys[entry.place].substr(0, 64) : "");
      EXPECT_EQ(entry.value, "value");
      return true;
    });
  }
}

KeyHash hash_with(uint64_t shard_hash, uint64_t slot_hash, uint8_t digest) {
  KeyHash hash{shard_hash, slot_hash, {}};
  hash.digest.back() = digest;
  return hash;
}

// Against a map: few different hashes that come often, and many of which parts are equal.
TEST(KeyHashSet, NumbersHashesInTheOrderInWhichTheyCome) {
  SeededRandom random(1200);
  KeyHashSet set;
  for (int round = 0; round < 2; ++round) {
    std::map<KeyHash, uint32_t> numbers;
    for (int i = 0; i < 20'000; ++i) {
      const KeyHash hash =
          hash_with(random.below(5), random.below(500), static_cast<uint8_t>(random.below(3)));
      const auto [known, is_new] = numbers.try_emplace(hash, numbers.size());
      const KeyHashSet::Place place = set.insert(hash);
      ASSERT_EQ(place.number, known->second);
      ASSERT_EQ(place.is_new, is_new);
      ASSERT_EQ(set.size(), numbers.size());
    }
    set.clear();
    EXPECT_EQ(set.size(), 0u);
  }
  // The slot hashes of an index database's partition, with a common stride.
  for (uint32_t i = 0; i < 200'000; ++i) {
    ASSERT_TRUE(set.insert(hash_with(0, uint64_t{i} * 1024 + 7, 0)).is_new);
  }
  EXPECT_EQ(set.insert(hash_with(0, 1024 * 4711 + 7, 0)).number, 4711u);
}

}  // namespace
}  // namespace blindfuse
