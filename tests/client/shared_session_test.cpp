#include "client/shared_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <random>
#include <thread>

#include "tests/client/client_testing.h"
#include "tests/client/fake_server.h"
#include "tests/client/look_ups.h"

namespace blindfuse {
namespace {

using std::chrono::milliseconds;

// Holds every request back while it is closed, unless its caller waits no more.
class Gate {
 public:
  void close() { is_open_ = false; }
  void open() { is_open_ = true; }
  // Until a request is held back.
  void wait_for_request() const {
    while (held_ == 0) std::this_thread::sleep_for(milliseconds(1));
  }
  void pass(const std::function<bool()>& keep_waiting) {
    ++held_;
    while (!is_open_) {
      if (!keep_waiting()) {
        --held_;
        throw CancelledError();
      }
      std::this_thread::sleep_for(milliseconds(1));
    }
    --held_;
  }

 private:
  std::atomic<bool> is_open_ = true;
  std::atomic<int> held_ = 0;
};

class GatedTransport : public FakeTransport {
 public:
  // `on_post` gets the number of queries of each request that the gate let pass.
  GatedTransport(FakeServer& server, Gate& gate, std::function<void(size_t)> on_post,
                 std::function<bool()> keep_waiting)
      : FakeTransport(server),
        query_bytes_(server.database.layout().query_bytes()),
        gate_(gate),
        on_post_(std::move(on_post)),
        keep_waiting_(std::move(keep_waiting)) {}

  HttpReply post(const std::string& path, std::span<const uint8_t> body,
                 BodyReceiver& receiver) override {
    gate_.pass(keep_waiting_);
    on_post_(body.size() / query_bytes_);
    if (!keep_waiting_()) throw CancelledError();
    return FakeTransport::post(path, body, receiver);
  }

 private:
  const uint64_t query_bytes_;
  Gate& gate_;
  std::function<void(size_t)> on_post_;
  std::function<bool()> keep_waiting_;
};

class SharedSessionTest : public FakeServerTest {
 protected:
  explicit SharedSessionTest(const char* vectors = "database_keyword.json")
      : FakeServerTest(ServedDatabase::from_vectors(vectors)) {
    server_.queries_max = kQueriesPerRequest;
    ClientOptions options = this->options();
    options.progress = [this](const ClientProgress&) {
      asking_thread_ = std::this_thread::get_id();
      if (throw_once_.exchange(false)) throw std::runtime_error("the callback's own trouble");
      return true;
    };
    const auto on_post = [this](size_t query_count) {
      if (query_count == throw_at_queries_) throw_once_ = true;
    };
    const TransportMaker make = [&](auto keep_waiting) {
      return std::make_unique<GatedTransport>(server_, gate_, on_post, std::move(keep_waiting));
    };
    shared_ = std::make_unique<SharedSession>(make, "http://test", options, std::stop_token());
    shared_->run({}, [](Session& session) { session.sync(); });
  }

  std::string key(size_t i) const { return FakeServerTest::key(i % entries_.size()); }
  std::string value(size_t i) const { return FakeServerTest::value(i % entries_.size()); }

  std::optional<std::string> get(const std::string& key, const std::stop_token& stop = {},
                                 KeyForm form = KeyForm::kAny) {
    return shared_->look_up(copies_of({&key, 1}), form, stop).front().value;
  }
  using Later = std::future<std::optional<std::string>>;

  // The same on a thread of its own, the first one: its request is held back when this returns.
  Later get_held(const std::string& key, const std::stop_token& stop = {}) {
    gate_.close();
    Later future = std::async(std::launch::async, [=, this] { return get(key, stop); });
    gate_.wait_for_request();
    return future;
  }
  // The same while another one is held back: it waits for its turn when this returns.
  Later get_after(const std::string& key, const std::stop_token& stop = {}) {
    const size_t waiting = shared_->waiting_count();
    Later future = std::async(std::launch::async, [=, this] { return get(key, stop); });
    wait_for_waiting(waiting + 1);
    return future;
  }
  void wait_for_waiting(size_t count) {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (shared_->waiting_count() < count) {
      if (std::chrono::steady_clock::now() > give_up) gate_.open();
      ASSERT_LE(std::chrono::steady_clock::now(), give_up) << "fewer calls wait";
      std::this_thread::sleep_for(milliseconds(1));
    }
  }

  Gate gate_;
  std::stop_source stop_;
  std::atomic<std::thread::id> asking_thread_;
  std::atomic<bool> throw_once_ = false;
  std::atomic<size_t> throw_at_queries_ = 0;  // in one request; 0: never
  std::unique_ptr<SharedSession> shared_;
};

TEST_F(SharedSessionTest, KeysThatWaitTogetherGoTogether) {
  auto first = get_held(key(0));
  std::vector<Later> others;
  for (size_t i = 1; i <= kQueriesPerRequest; ++i) others.push_back(get_after(key(i)));
  gate_.open();
  EXPECT_EQ(first.get(), value(0));
  for (size_t i = 1; i <= others.size(); ++i) EXPECT_EQ(others[i - 1].get(), value(i)) << i;
  EXPECT_EQ(server_.count("/queries"), 2u);
  EXPECT_EQ(shared_->waiting_count(), 0u);
}

TEST_F(SharedSessionTest, OneRequestHoldsWholeCallsAndNoMoreThanServersTake) {
  auto first = get_held(key(0));
  const std::vector<std::string> many = {key(1), key(2), key(3), key(4), key(5),
                                         key(6), key(7), key(8), key(9), key(10)};
  std::vector<std::future<std::vector<Answer>>> others;
  for (int i = 0; i < 3; ++i) {
    others.push_back(std::async(
        std::launch::async, [&] { return shared_->look_up(copies_of(many), KeyForm::kAny, {}); }));
  }
  wait_for_waiting(others.size());
  gate_.open();
  EXPECT_EQ(first.get(), value(0));
  for (auto& other : others) {
    const std::vector<Answer> answers = other.get();
    for (size_t i = 0; i < many.size(); ++i) EXPECT_EQ(answers[i].value, value(i + 1));
  }
  // No call waits for more than fits next to its own keys: what goes together is whole calls.
  const uint64_t query_bytes = server_.database.layout().query_bytes();
  std::vector<size_t> sizes;
  for (const SeenRequest& request : server_.seen("/queries")) {
    sizes.push_back(request.body.size() / query_bytes);
  }
  EXPECT_EQ(sizes, (std::vector<size_t>{1, 10, 10, 10}));
}

TEST_F(SharedSessionTest, AnErrorOfTheServerIsThatOfAllWhoAsked) {
  auto first = get_held(key(0));
  auto second = get_after(key(1));
  auto third = get_after(key(2));
  server_.errors = {FakeServer::error(500, "no"), FakeServer::error(500, "no"),
                    FakeServer::error(500, "no")};
  gate_.open();
  EXPECT_THROW(first.get(), ServerError);
  EXPECT_THROW(second.get(), ServerError);
  EXPECT_THROW(third.get(), ServerError);
  server_.errors.clear();
  EXPECT_EQ(get(key(3)), value(3));
}

TEST_F(SharedSessionTest, WhatACallbackThrowsIsTheErrorOfItsOwnCall) {
  throw_at_queries_ = 2;
  auto first = get_held(key(0));
  Later both[] = {get_after(key(1)), get_after(key(2))};
  gate_.open();
  EXPECT_EQ(first.get(), value(0));
  int failed = 0;
  for (size_t i = 0; i < 2; ++i) {
    try {
      EXPECT_EQ(both[i].get(), value(i + 1));
    } catch (const std::runtime_error&) {
      ++failed;
    }
  }
  EXPECT_EQ(failed, 1);
}

TEST_F(SharedSessionTest, WhoWaitsForHisTurnCanBeStopped) {
  auto first = get_held(key(0));
  auto stopped = get_after(key(1), stop_.get_token());
  auto patient = get_after(key(2));
  stop_.request_stop();
  EXPECT_THROW(stopped.get(), CancelledError);
  EXPECT_THROW(get(key(3), stop_.get_token()), CancelledError);  // before it began
  gate_.open();
  EXPECT_EQ(first.get(), value(0));
  EXPECT_EQ(patient.get(), value(2));
}

TEST_F(SharedSessionTest, WhoAsksForAllCanBeStoppedAndTheOthersAskAgain) {
  auto stopped = get_held(key(0), stop_.get_token());
  auto patient = get_after(key(1));
  stop_.request_stop();
  EXPECT_THROW(stopped.get(), CancelledError);
  gate_.open();
  EXPECT_EQ(patient.get(), value(1));
}

TEST_F(SharedSessionTest, WhatWasStoppedWhileAnotherAskedForItIsNotAskedForAgain) {
  std::promise<void> has_turn, may_end;
  auto turn = std::async(std::launch::async, [&] {
    shared_->run({}, [&](Session&) {
      has_turn.set_value();
      may_end.get_future().wait();
    });
  });
  has_turn.get_future().wait();
  std::stop_source stops[2];
  std::atomic<std::thread::id> threads[2];
  Later both[2];
  for (size_t i = 0; i < 2; ++i) {
    both[i] = std::async(std::launch::async, [&, i] {
      threads[i] = std::this_thread::get_id();
      return get(key(i), stops[i].get_token());
    });
    wait_for_waiting(i + 1);
  }
  gate_.close();
  may_end.set_value();
  gate_.wait_for_request();
  const size_t asking = asking_thread_.load() == threads[0].load() ? 0 : 1;
  for (const size_t i : {1 - asking, asking}) {
    stops[i].request_stop();
    EXPECT_THROW(both[i].get(), CancelledError);
  }
  EXPECT_EQ(shared_->waiting_count(), 0u);
  gate_.open();
  EXPECT_EQ(get(key(2)), value(2));
  ASSERT_EQ(server_.count("/queries"), 1u);
  EXPECT_EQ(server_.seen("/queries")[0].body.size(), server_.database.layout().query_bytes());
}

TEST_F(SharedSessionTest, ATurnCanBeStopped) {
  auto first = get_held(key(0));
  auto sync = std::async(std::launch::async, [&] {
    return shared_->run(stop_.get_token(), [](Session& session) { return session.sync(); });
  });
  stop_.request_stop();
  EXPECT_THROW(sync.get(), CancelledError);
  gate_.open();
  EXPECT_EQ(first.get(), value(0));
}

TEST_F(SharedSessionTest, ManyThreadsGetWhatTheyAskedFor) {
  constexpr unsigned kSeed = 7;
  std::vector<std::future<int>> threads;
  for (unsigned t = 0; t < 6; ++t) {
    threads.push_back(std::async(std::launch::async, [&, t] {
      std::mt19937 random(kSeed + t);
      int stopped = 0;
      for (int round = 0; round < 30; ++round) {
        const size_t i = random() % 100;
        if (random() % 4 == 0) {
          std::stop_source stop;
          std::jthread stopper([&, wait = random() % 3] {
            std::this_thread::sleep_for(milliseconds(wait));
            stop.request_stop();
          });
          try {
            EXPECT_EQ(get(key(i), stop.get_token()), value(i));
          } catch (const CancelledError&) {
            ++stopped;
          }
        } else if (random() % 8 == 0) {
          EXPECT_THROW(get(std::string(kKeyBytesMax + 1, 'x')), InputError);
          shared_->run({}, [](Session& session) { session.prepare(2); });
        } else {
          EXPECT_EQ(get(key(i)), value(i));
        }
      }
      return stopped;
    }));
  }
  int stopped = 0;
  for (auto& thread : threads) stopped += thread.get();
  std::printf("%d of 180 calls stopped\n", stopped);
}

TEST_F(SharedSessionTest, ANumberIsNoKeyOfAKeywordDatabase) {
  EXPECT_THROW(get("5", {}, KeyForm::kNumber), InputError);
  EXPECT_EQ(server_.count("/queries"), 0u);
}

class SharedIndexSessionTest : public SharedSessionTest {
 protected:
  SharedIndexSessionTest() : SharedSessionTest("database_index.json") {}
};

TEST_F(SharedIndexSessionTest, ABadKeyIsTheErrorOfItsOwnCall) {
  auto first = get_held("0");
  auto bad = get_after("no number");
  auto good = get_after("1");
  gate_.open();
  EXPECT_TRUE(first.get().has_value());
  EXPECT_THROW(bad.get(), InputError);
  EXPECT_TRUE(good.get().has_value());
  EXPECT_EQ(get("2", {}, KeyForm::kNumber), get("2"));
}

}  // namespace
}  // namespace blindfuse
