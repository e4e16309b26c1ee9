#include "host/server/serving/serving_epoch.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/server/tiny_database.h"

namespace blindfuse::server_testing {
namespace {

using std::chrono::seconds;
using Clock = ServedEpochs::Clock;

EpochId id_of(char digit) { return EpochId(64, digit); }

std::shared_ptr<const ServingEpoch> make_epoch(char digit, std::vector<EpochId> retired = {}) {
  LoadedDatabase database = tiny_database();
  database.epoch = id_of(digit);
  database.retired = std::move(retired);
  return std::make_shared<const ServingEpoch>(std::move(database),
                                              BatchLimits{.batch_max = 1, .queue_max = 1});
}

// The id of what is found; or whether it has been replaced, and the current epoch.
std::string found(const ServedEpochs& epochs, const std::string& id) {
  const ServedEpochs::Found found = epochs.find(id);
  if (found.epoch) return found.epoch->database().epoch.substr(0, 1);
  return (found.is_retired ? "retired, now " : "unknown, now ") + found.current.substr(0, 1);
}

// What is in memory, in its order.
std::string states(const ServedEpochs& epochs) {
  std::string text;
  for (const EpochInMemory& held : epochs.in_memory()) {
    static const std::map<EpochState, std::string> kNames = {
        {EpochState::kCurrent, " current"},
        {EpochState::kGrace, " grace"},
        {EpochState::kLeaving, " leaving"},
        {EpochState::kDownloads, " downloads"}};
    text += (text.empty() ? "" : ", ") + held.id.substr(0, 1) + kNames.at(held.state);
  }
  return text;
}

TEST(ServedEpochs, KnowsItsEpoch) {
  const ServedEpochs epochs(make_epoch('a', {id_of('9')}));
  EXPECT_EQ(epochs.current()->database().epoch, id_of('a'));
  EXPECT_EQ(epochs.all().size(), 1u);
  EXPECT_EQ(found(epochs, id_of('a')), "a");
  EXPECT_EQ(found(epochs, id_of('9')), "retired, now a") << "the directory says that it was there";
  for (const std::string& id : {id_of('b'), std::string(), std::string("a"), id_of('A'),
                                id_of('a') + "a", id_of('a').substr(1)}) {
    EXPECT_EQ(found(epochs, id), "unknown, now a") << id;
  }
}

TEST(ServedEpochs, ServesTheOneBeforeDuringItsGrace) {
  const auto now = Clock::now();
  ServedEpochs epochs(make_epoch('a'));
  epochs.replace(make_epoch('b', {id_of('a')}), now + seconds(60));
  EXPECT_EQ(epochs.current()->database().epoch, id_of('b'));
  EXPECT_EQ(found(epochs, id_of('a')), "a");
  EXPECT_EQ(epochs.all().size(), 2u);
  EXPECT_EQ(epochs.all()[0]->database().epoch, id_of('b')) << "the current one is the first";
  epochs.retire(now + seconds(59));
  EXPECT_EQ(found(epochs, id_of('a')), "a");
  epochs.retire(now + seconds(60));
  EXPECT_EQ(found(epochs, id_of('a')), "retired, now b");
  EXPECT_EQ(found(epochs, id_of('b')), "b");
  EXPECT_EQ(epochs.all().size(), 1u);
}

// Another directory took the place of the first, which knew nothing of its epochs.
TEST(ServedEpochs, RemembersWhatItServed) {
  const auto now = Clock::now();
  ServedEpochs epochs(make_epoch('a'));
  epochs.replace(make_epoch('b'), now);
  epochs.replace(make_epoch('c'), now);
  epochs.retire(now);
  EXPECT_EQ(found(epochs, id_of('a')), "retired, now c");
  EXPECT_EQ(found(epochs, id_of('b')), "retired, now c");
  EXPECT_EQ(found(epochs, id_of('d')), "unknown, now c");
}

TEST(ServedEpochs, GivesEachItsOwnGrace) {
  const auto now = Clock::now();
  ServedEpochs epochs(make_epoch('a'));
  epochs.replace(make_epoch('b'), now + seconds(30));
  epochs.replace(make_epoch('c'), now + seconds(10));
  EXPECT_EQ(epochs.all().size(), 3u);
  epochs.retire(now + seconds(20));
  EXPECT_EQ(found(epochs, id_of('a')), "a");
  EXPECT_EQ(found(epochs, id_of('b')), "retired, now c");
  epochs.retire(now + seconds(40));
  EXPECT_EQ(found(epochs, id_of('a')), "retired, now c");
}

TEST(ServedEpochs, TakesAnEpochThatComesBack) {
  const auto now = Clock::now();
  const auto first = make_epoch('a');
  ServedEpochs epochs(first);
  epochs.replace(make_epoch('b'), now + seconds(60));
  const auto again = make_epoch('a');
  epochs.replace(again, now + seconds(60));
  EXPECT_EQ(epochs.find(id_of('a')).epoch, again) << "the newer copy";
  EXPECT_EQ(epochs.retire(now), 0u) << "the test holds the older copy";
  EXPECT_EQ(epochs.all().size(), 2u) << "which nobody else gets any more";
  EXPECT_EQ(found(epochs, id_of('b')), "b");
  epochs.retire(now + seconds(60));
  EXPECT_EQ(found(epochs, id_of('a')), "a");
  EXPECT_EQ(found(epochs, id_of('b')), "retired, now a");
  epochs.replace(make_epoch('c'), now);
  epochs.retire(now);
  EXPECT_EQ(found(epochs, id_of('a')), "retired, now c");
}

// Freeing one takes a while: whoever has the last request for it is not kept waiting.
TEST(ServedEpochs, FreesAnEpochWhenItIsToldTo) {
  ServedEpochs epochs(make_epoch('a'));
  auto held = epochs.find(id_of('a')).epoch;
  const std::weak_ptr<const ServingEpoch> watched = held;
  epochs.replace(make_epoch('b'), Clock::now());
  EXPECT_EQ(epochs.retire(Clock::now()), 0u);
  EXPECT_EQ(found(epochs, id_of('a')), "retired, now b");
  EXPECT_EQ(held->scheduler().waiting_count(), 0u) << "its engine answers whoever began with it";
  held.reset();
  EXPECT_FALSE(watched.expired());
  EXPECT_EQ(epochs.retire(Clock::now()), 1u);
  EXPECT_TRUE(watched.expired());
}

// What they hold is known, and no more than that stays.
TEST(ServedEpochs, LeavesDownloadsToThoseWhoHoldThem) {
  ServedEpochs epochs(make_epoch('a'));
  const std::weak_ptr<const ServingEpoch> watched = epochs.current();
  auto downloads = epochs.current()->database().downloads;
  epochs.replace(make_epoch('b'), Clock::now());
  EXPECT_EQ(epochs.retire(Clock::now()), 0u) << "not all of it has gone";
  EXPECT_TRUE(watched.expired());
  ASSERT_EQ(states(epochs), "b current, a downloads");
  EXPECT_EQ(epochs.in_memory()[1].downloads, downloads);
  EXPECT_EQ(epochs.in_memory()[1].epoch, nullptr);
  downloads.reset();
  EXPECT_EQ(states(epochs), "b current");
  EXPECT_EQ(epochs.retire(Clock::now()), 1u);
}

TEST(ServedEpochs, KnowsAllThatHoldMemory) {
  ServedEpochs epochs(make_epoch('a'));
  const auto a = epochs.current()->database().downloads;
  epochs.replace(make_epoch('b'), Clock::now());
  epochs.retire(Clock::now());
  const auto b = epochs.current();
  epochs.replace(make_epoch('c'), Clock::now());
  epochs.retire(Clock::now());
  epochs.replace(make_epoch('d'), Clock::now() + seconds(60));
  EXPECT_EQ(states(epochs), "d current, c grace, b leaving, a downloads");
}

TEST(ServedEpochs, EndsTheGraceOfTheOldest) {
  const auto grace = Clock::now() + seconds(1000);
  ServedEpochs epochs(make_epoch('a'));
  epochs.end_oldest_grace();
  epochs.replace(make_epoch('b'), grace);
  epochs.replace(make_epoch('c'), grace);
  epochs.end_oldest_grace();
  EXPECT_EQ(epochs.retire(Clock::now()), 1u);
  EXPECT_EQ(found(epochs, id_of('a')), "retired, now c");
  EXPECT_EQ(found(epochs, id_of('b')), "b");
}

}  // namespace
}  // namespace blindfuse::server_testing
