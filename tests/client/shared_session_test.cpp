#include "client/shared_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <random>
#include <thread>

#include "tests/client/fake_server.h"
#include "tests/client/scratch_folder.h"

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

class SharedSessionTest : public testing::Test {
 protected:
  explicit SharedSessionTest(const char* vectors = "database_keyword.json")
      : server_(ServedDatabase::from_vectors(vectors)), vectors_(read_vectors(vectors)) {
    server_.queries_max = kQueriesPerRequest;
    ClientOptions options;
    options.cache_folder = scratch_.path();
    options.thread_count = 1;
    options.progress = [this](const ClientProgress&) {
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

  std::string key(size_t i) const { return *decode_hex(text(i, "key")); }
  std::string value(size_t i) const { return *decode_hex(text(i, "value")); }
  std::string text(size_t i, const char* member) const {
    const nlohmann::json& entries = vectors_["entries"];
    return entries[i % entries.size()][member];
  }

  std::optional<std::string> get(const std::string& key, const std::stop_token& stop = {},
                                 KeyForm form = KeyForm::kAny) {
    return shared_->look_up({&key, 1}, form, stop).front().value;
  }
  // The same on a thread of its own, which waits for its turn when this returns, or soon after.
  std::future<std::optional<std::string>> get_later(const std::string& key,
                                                    const std::stop_token& stop = {}) {
    auto future = std::async(std::launch::async, [=, this] { return get(key, stop); });
    std::this_thread::sleep_for(milliseconds(20));
    return future;
  }

  ScratchFolder scratch_;
  FakeServer server_;
  Gate gate_;
  std::atomic<bool> throw_once_ = false;
  std::atomic<size_t> throw_at_queries_ = 0;  // in one request; 0: never
  const nlohmann::json vectors_;
  std::unique_ptr<SharedSession> shared_;
};

TEST_F(SharedSessionTest, KeysThatWaitTogetherGoTogether) {
  gate_.close();
  auto first = get_later(key(0));
  gate_.wait_for_request();
  std::vector<std::future<std::optional<std::string>>> others;
  for (size_t i = 1; i <= kQueriesPerRequest; ++i) others.push_back(get_later(key(i)));
  gate_.open();
  EXPECT_EQ(first.get(), value(0));
  for (size_t i = 1; i <= others.size(); ++i) EXPECT_EQ(others[i - 1].get(), value(i)) << i;
  // Two, unless a thread came later than its 20 ms.
  EXPECT_LT(server_.count("/queries"), 1 + others.size());
}

TEST_F(SharedSessionTest, OneRequestHoldsWholeCallsAndNoMoreThanServersTake) {
  gate_.close();
  auto first = get_later(key(0));
  gate_.wait_for_request();
  const std::vector<std::string> many = {key(1), key(2), key(3), key(4), key(5),
                                         key(6), key(7), key(8), key(9), key(10)};
  std::vector<std::future<std::vector<Answer>>> others;
  for (int i = 0; i < 3; ++i) {
    others.push_back(
        std::async(std::launch::async, [&] { return shared_->look_up(many, KeyForm::kAny, {}); }));
  }
  std::this_thread::sleep_for(milliseconds(50));
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
  gate_.close();
  auto first = get_later(key(0));
  gate_.wait_for_request();
  auto second = get_later(key(1));
  auto third = get_later(key(2));
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
  // Two that wait go together, unless a thread comes late: then again.
  for (int round = 0; round < 50; ++round) {
    gate_.close();
    auto first = get_later(key(0));
    gate_.wait_for_request();
    std::future<std::optional<std::string>> both[] = {get_later(key(1)), get_later(key(2))};
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
    if (failed == 0) continue;
    EXPECT_EQ(failed, 1);
    return;
  }
  FAIL() << "they never went together";
}

TEST_F(SharedSessionTest, WhoWaitsForHisTurnCanBeStopped) {
  gate_.close();
  auto first = get_later(key(0));
  gate_.wait_for_request();
  std::stop_source stop;
  auto stopped = get_later(key(1), stop.get_token());
  auto patient = get_later(key(2));
  stop.request_stop();
  EXPECT_THROW(stopped.get(), CancelledError);
  EXPECT_THROW(get(key(3), stop.get_token()), CancelledError);  // before it began
  gate_.open();
  EXPECT_EQ(first.get(), value(0));
  EXPECT_EQ(patient.get(), value(2));
}

TEST_F(SharedSessionTest, WhoAsksForAllCanBeStoppedAndTheOthersAskAnew) {
  gate_.close();
  std::stop_source stop;
  auto stopped = get_later(key(0), stop.get_token());
  gate_.wait_for_request();
  auto patient = get_later(key(1));
  stop.request_stop();
  EXPECT_THROW(stopped.get(), CancelledError);
  gate_.open();
  EXPECT_EQ(patient.get(), value(1));
}

TEST_F(SharedSessionTest, ATurnCanBeStopped) {
  gate_.close();
  auto first = get_later(key(0));
  gate_.wait_for_request();
  std::stop_source stop;
  auto sync = std::async(std::launch::async, [&] {
    return shared_->run(stop.get_token(), [](Session& session) { return session.sync(); });
  });
  stop.request_stop();
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
  gate_.close();
  auto first = get_later("0");
  gate_.wait_for_request();
  auto bad = get_later("no number");
  auto good = get_later("1");
  gate_.open();
  EXPECT_TRUE(first.get().has_value());
  EXPECT_THROW(bad.get(), InputError);
  EXPECT_TRUE(good.get().has_value());
  EXPECT_EQ(get("2", {}, KeyForm::kNumber), get("2"));
}

}  // namespace
}  // namespace blindfuse
