#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "host/server/http/connections.h"

namespace blindfuse::http {
namespace {

using Stage = Connections::Stage;
using Notice = Connections::Notice;

class ConnectionsTest : public ::testing::Test {
 protected:
  // Notes its letter when it is told to end, and a question mark when the server stops.
  std::unique_ptr<Connections::Place> place(char letter, Stage stage) {
    auto place = std::make_unique<Connections::Place>(
        all_, [this, letter](Notice notice) { told_ += notice == Notice::kEnd ? letter : '?'; });
    place->enter(stage);
    return place;
  }

  Connections all_;
  std::string told_;
};

TEST_F(ConnectionsTest, WhoHasBeenQuietLongestGoesFirst) {
  const auto a = place('a', Stage::kQuiet);
  const auto b = place('b', Stage::kQuiet);
  const auto c = place('c', Stage::kQuiet);
  a->enter(Stage::kBusy);
  a->enter(Stage::kQuiet);  // now it is the youngest
  b->enter(Stage::kQuiet);  // it was there already
  EXPECT_TRUE(all_.end_oldest());
  EXPECT_TRUE(all_.end_oldest());
  EXPECT_TRUE(all_.end_oldest());
  EXPECT_FALSE(all_.end_oldest());
  EXPECT_EQ(told_, "bca");
}

// A new client, which is still silent, does not go for bodies of which nothing comes.
TEST_F(ConnectionsTest, WhoHasSentNothingLongestGoesFirstThenResponsesAndNeverTheBusy) {
  const auto busy = place('x', Stage::kBusy);
  const auto sending = place('s', Stage::kSending);
  const auto grows = place('g', Stage::kBody);
  const auto body = place('b', Stage::kBody);
  const auto head = place('h', Stage::kHead);
  const auto quiet = place('q', Stage::kQuiet);
  grows->set_body_bytes(5);
  body->set_body_bytes(0);
  const auto late = place('l', Stage::kQuiet);
  while (all_.end_oldest()) {
  }
  EXPECT_EQ(told_, "bhqgls");
  EXPECT_EQ(all_.count(), 1u);
}

TEST_F(ConnectionsTest, WhoseBodyHasBeenArrivingLongestMakesRoomForBodies) {
  const auto first = place('a', Stage::kBody);
  const auto second = place('b', Stage::kBody);
  first->set_body_bytes(5);
  EXPECT_TRUE(all_.end_oldest_body());
  EXPECT_EQ(told_, "a");
}

TEST_F(ConnectionsTest, CountsOnlyThoseThatWereNotChosenToGo) {
  const auto a = place('a', Stage::kBody);
  auto b = place('b', Stage::kBody);
  a->set_body_bytes(700);
  b->set_body_bytes(500);
  EXPECT_EQ(all_.body_bytes(), 1200u);
  EXPECT_TRUE(all_.end_oldest_body());
  EXPECT_EQ(told_, "a");
  EXPECT_EQ(all_.count(), 1u);
  EXPECT_EQ(all_.body_bytes(), 500u);
  a->set_body_bytes(900);  // it has not heard of it yet
  a->enter(Stage::kQuiet);
  EXPECT_EQ(all_.body_bytes(), 500u);
  b->set_body_bytes(100);
  EXPECT_EQ(all_.body_bytes(), 100u);
  b.reset();
  EXPECT_EQ(all_.count(), 0u);
  EXPECT_EQ(all_.body_bytes(), 0u);
  EXPECT_FALSE(all_.end_oldest()) << "nobody is told twice";
}

TEST_F(ConnectionsTest, WhoHasBeenTakingAResponseLongestMakesRoomForTheNext) {
  constexpr uint64_t kMost = 100;
  const auto a = place('a', Stage::kBusy);
  auto b = place('b', Stage::kBusy);
  const auto lent = place('l', Stage::kSending);
  EXPECT_TRUE(a->reserve_response(50, kMost));
  EXPECT_TRUE(b->reserve_response(50, kMost));
  EXPECT_EQ(all_.response_bytes(), 100u);
  b->enter(Stage::kSending);
  a->enter(Stage::kSending);
  const auto c = place('c', Stage::kBusy);
  EXPECT_FALSE(c->reserve_response(30, kMost));
  EXPECT_EQ(told_, "") << "that alone ends no one";
  EXPECT_EQ(c->make_room(30, kMost), 1u);
  EXPECT_EQ(told_, "b") << "whoever holds nothing stays";
  EXPECT_FALSE(c->reserve_response(30, kMost)) << "its memory is there until it has gone";
  EXPECT_EQ(c->make_room(30, kMost), 0u) << "enough are to go";
  EXPECT_EQ(all_.response_bytes(), 100u);
  b.reset();
  EXPECT_EQ(all_.response_bytes(), 50u);
  EXPECT_TRUE(c->reserve_response(30, kMost));
  EXPECT_EQ(all_.response_bytes(), 80u);
  const auto d = place('d', Stage::kBusy);
  EXPECT_TRUE(d->reserve_response(20, kMost));
  EXPECT_EQ(told_, "b");
}

TEST_F(ConnectionsTest, WhoTakesSomeMoreOfAResponseGoesAfterWhoDoesNot) {
  const auto a = place('a', Stage::kBusy), b = place('b', Stage::kBusy);
  EXPECT_TRUE(a->reserve_response(50, 100));
  EXPECT_TRUE(b->reserve_response(50, 100));
  a->enter(Stage::kSending);
  b->enter(Stage::kSending);
  a->note_progress();
  const auto c = place('c', Stage::kBusy);
  c->note_progress();  // of nothing
  EXPECT_EQ(c->make_room(10, 100), 1u);
  EXPECT_EQ(told_, "b");
  b->note_progress();  // too late
  EXPECT_EQ(c->make_room(60, 100), 1u);
  EXPECT_EQ(told_, "ba");
  EXPECT_FALSE(a->reserve_response(1, 1000)) << "it is to go";
  EXPECT_EQ(a->make_room(1, 100), 0u);
}

TEST_F(ConnectionsTest, NobodyGoesForAResponseThatHasNoRoomNevertheless) {
  constexpr uint64_t kMost = 100;
  const auto making = place('m', Stage::kBusy);
  const auto sending = place('s', Stage::kBusy);
  EXPECT_TRUE(making->reserve_response(60, kMost));
  EXPECT_TRUE(sending->reserve_response(40, kMost));
  sending->enter(Stage::kSending);
  const auto next = place('n', Stage::kBusy);
  EXPECT_FALSE(next->reserve_response(41, kMost));
  EXPECT_EQ(next->make_room(41, kMost), std::nullopt);
  EXPECT_EQ(told_, "");
  EXPECT_EQ(all_.response_bytes(), 100u);
  making->release_response();
  EXPECT_EQ(all_.response_bytes(), 40u);
  EXPECT_TRUE(next->reserve_response(41, kMost));
}

TEST_F(ConnectionsTest, AResponseHoldsMemoryUntilItsConnectionHasGone) {
  auto a = place('a', Stage::kBusy);
  EXPECT_TRUE(a->reserve_response(50, 100));
  a->enter(Stage::kSending);
  EXPECT_TRUE(all_.end_oldest());
  EXPECT_EQ(all_.response_bytes(), 50u);
  a->release_response();
  EXPECT_EQ(all_.response_bytes(), 0u);
  a.reset();
  EXPECT_EQ(all_.response_bytes(), 0u) << "once";
  // Stages come and go, and the sums with them.
  const auto b = place('b', Stage::kSending);
  b->enter(Stage::kBusy);
  EXPECT_TRUE(b->reserve_response(100, 100));
  b->enter(Stage::kSending);
  b->enter(Stage::kBusy);
  const auto c = place('c', Stage::kBusy);
  EXPECT_EQ(c->make_room(1, 100), std::nullopt) << "nobody is sending";
  b->enter(Stage::kSending);
  b->release_response();
  EXPECT_TRUE(c->reserve_response(100, 100));
}

TEST_F(ConnectionsTest, EndsThoseThatAreSentMemoryWhichIsWantedBack) {
  const int memory = 0;
  const int other = 0;
  const auto a = place('a', Stage::kBusy);
  const auto b = place('b', Stage::kBusy);
  const auto c = place('c', Stage::kBusy);
  a->enter(Stage::kSending, &memory);
  b->enter(Stage::kSending, &other);
  c->enter(Stage::kSending, &memory);
  const auto d = place('d', Stage::kSending);
  EXPECT_EQ(all_.end_senders_of(&memory), 2u);
  EXPECT_EQ(told_, "ac");
  EXPECT_EQ(all_.end_senders_of(&memory), 0u);
  b->enter(Stage::kBusy);
  b->enter(Stage::kSending);
  EXPECT_EQ(all_.end_senders_of(&other), 0u) << "that response has gone";
}

TEST_F(ConnectionsTest, TellsAllThatTheServerStops) {
  const auto a = place('a', Stage::kQuiet);
  const auto b = place('b', Stage::kBusy);
  all_.tell_all(Notice::kStopping);
  EXPECT_EQ(told_, "??");
  EXPECT_EQ(all_.count(), 2u);
  all_.tell_all(Notice::kEnd);
  EXPECT_EQ(told_.size(), 4u);
}

TEST_F(ConnectionsTest, WaitsForThoseThatWereChosenToGo) {
  auto a = place('a', Stage::kQuiet);
  all_.end_oldest();
  std::thread leaving([&] { a.reset(); });
  all_.wait_until_empty();
  leaving.join();
  EXPECT_EQ(a, nullptr);
}

}  // namespace
}  // namespace blindfuse::http
