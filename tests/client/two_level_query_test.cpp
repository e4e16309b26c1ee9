// What a server of two levels gets from a client: the same length for every key, and words that
// look alike whatever was asked for.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "client/ring_query.h"
#include "client/session.h"
#include "src/arithmetic/little_endian.h"
#include "tests/client/client_testing.h"
#include "tests/client/fake_server.h"
#include "tests/client/look_ups.h"
#include "tests/client/seeded_random.h"

namespace blindfuse {
namespace {

constexpr uint64_t kNumberLimit = 4'294'955'009;
constexpr size_t kSentKey = 24'576;
constexpr size_t kKeyPoints = 3 * 2048;  // of a key

struct Levels {
  const char* name;
  std::optional<SecondLevel> second;
  uint64_t query_bytes;
};

// Five shards of records of 100 bytes, in rows of a block. A query has 4 * 2048 bytes of words and
// one key or two, and with groups of two shards 3 * 25 bits of numbers.
const std::vector<Levels> kLevels = {
    {"one level", {}, 8'192 + kSentKey},
    {"two levels", SecondLevel{2, 25, 19, 13, 0}, 8'192 + kSentKey + 10},
    {"a short key", SecondLevel{2, 25, 19, 13, 256}, 8'192 + 2 * kSentKey + 10},
};

TEST(TwoLevelQueries, HaveOneLengthForEveryShardAndForKeysThatAreNotThere) {
  for (const Levels& levels : kLevels) {
    SCOPED_TRACE(levels.name);
    const ScratchFolder scratch;
    ServedDatabase database = ServedDatabase::with_noise(5, 100, 0, "ring-2048", 18);
    if (levels.second) database = database.with_second_level(*levels.second);
    FakeServer server(database);
    ClientOptions options;
    options.cache_folder = scratch.path();
    Session session(std::make_unique<FakeTransport>(server), "http://test", std::move(options));
    // Entry i is in shard i. The last three are not there.
    const std::vector<std::string> keys = {"0", "1", "2", "3", "4", "5", "9", "4294967296"};
    for (const std::string& key : keys)
      EXPECT_EQ(value_of(session, key).has_value(), key.size() == 1 && key < "5") << key;
    values_of(session, keys);
    const std::vector<SeenRequest> asked = server.seen("/queries");
    ASSERT_EQ(asked.size(), keys.size() + 1);
    std::set<std::string> paths;
    for (const SeenRequest& request : asked) paths.insert(request.path);
    EXPECT_EQ(paths.size(), 1u);
    for (size_t i = 0; i < keys.size(); ++i) {
      EXPECT_EQ(asked[i].body.size(), levels.query_bytes) << keys[i];
    }
    EXPECT_EQ(asked.back().body.size(), keys.size() * levels.query_bytes);
  }
}

// How often numbers below a limit fall into each of as many parts of equal length.
class PartCounts {
 public:
  PartCounts(size_t count, uint64_t limit) : counts_(count), limit_(limit) {}

  void add(uint64_t number) { ++counts_.at(number * counts_.size() / limit_); }
  double chi_square() const { return blindfuse::chi_square(counts_); }
  uint64_t count(size_t part) const { return counts_[part]; }

 private:
  std::vector<uint64_t> counts_;
  uint64_t limit_;
};

// With 4 bits of a word, asking adds a part of 16. A client that draws again when the sum goes
// beyond Q leaves the lowest part empty where it asks. Bounds are exceeded with probability 1e-6:
// 15 degrees of freedom for 16 parts, and 255 for 256.
TEST(TwoLevelQueries, AreUniformInAllTheirParts) {
  constexpr double kBoundOf16 = 56.5, kBoundOf256 = 374;
  constexpr size_t kRounds = 40, kTogether = 50;
  constexpr uint32_t kGroups = 5, kAsked = 3;
  Layout layout;
  layout.shard_count = 2 * kGroups;
  layout.row_count = 2048;
  layout.record = {0, 0, 8};
  layout.lwe = find_lwe_params("ring-2048");
  layout.query_bits = 32;
  layout.response_bits = 4;
  layout.second = SecondLevel{2, 32, 32, 32, 64};
  const RingQueryMaker maker(ring::PublicPolynomials(ChaChaKey{17}), layout.row_count,
                             RingQueryMaker::Second{kGroups, 64});
  const RandomSource random = seeded_random(61);

  std::vector<PartCounts> groups(kGroups, PartCounts(16, uint64_t{1} << 32));
  // Of the packing key and of the short key.
  std::vector<PartCounts> keys(2, PartCounts(256, kNumberLimit));
  constexpr std::array<size_t, 3> kWatched = {0, 2'500, kKeyPoints - 1};
  std::vector<PartCounts> watched(2 * kWatched.size(), PartCounts(16, kNumberLimit));
  // The second shard of the group.
  const KeyPlace place = {.shard = 2 * kAsked + 1, .asks = 1, .rows = {7, 21, 55}};
  std::vector<uint8_t> sent(layout.query_bytes());
  ASSERT_EQ(sent.size(), 8'192 + 2 * kSentKey + 4 * kGroups);
  for (size_t round = 0; round < kRounds; ++round) {
    for (PreparedQuery& query : maker.make(kTogether, random)) {
      (void)std::move(query).encrypt({&place, 1}, layout, sent);
      for (size_t key = 0; key < 2; ++key) {
        const uint8_t* const words = sent.data() + 8'192 + key * kSentKey;
        for (size_t i = 0; i < kKeyPoints; ++i) keys[key].add(load_le<uint32_t>(words + 4 * i));
        for (size_t w = 0; w < kWatched.size(); ++w) {
          watched[key * kWatched.size() + w].add(load_le<uint32_t>(words + 4 * kWatched[w]));
        }
      }
      const uint8_t* const numbers = sent.data() + 8'192 + 2 * kSentKey;
      for (uint32_t g = 0; g < kGroups; ++g) groups[g].add(load_le<uint32_t>(numbers + 4 * g));
    }
  }
  for (uint32_t g = 0; g < kGroups; ++g) {
    EXPECT_LT(groups[g].chi_square(), kBoundOf16) << "group " << g;
    // 125 expected, standard deviation 11.
    EXPECT_NEAR(static_cast<double>(groups[g].count(0)), kRounds * kTogether / 16.0, 55)
        << "the lowest part of group " << g;
  }
  for (size_t key = 0; key < 2; ++key) {
    EXPECT_LT(keys[key].chi_square(), kBoundOf256) << "key " << key;
    for (size_t w = 0; w < kWatched.size(); ++w) {
      EXPECT_LT(watched[key * kWatched.size() + w].chi_square(), kBoundOf16)
          << "word " << kWatched[w] << " of key " << key;
    }
  }
}

}  // namespace
}  // namespace blindfuse
