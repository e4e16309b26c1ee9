#include <gtest/gtest.h>

#include <memory>
#include <optional>
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

TEST_F(ConnectionsTest, ThenBodiesThenResponsesAndNeverTheBusy) {
  const auto busy = place('x', Stage::kBusy);
  const auto sending = place('s', Stage::kSending);
  const auto body = place('b', Stage::kBody);
  const auto quiet = place('q', Stage::kQuiet);
  while (all_.end_oldest()) {
  }
  EXPECT_EQ(told_, "qbs");
  EXPECT_EQ(all_.count(), 1u);
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
