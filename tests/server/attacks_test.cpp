// Hostile and unlucky clients, and good ones next to them, which must not notice.
#include "tests/server/attacks.h"

#include <sys/resource.h>

#include <future>

namespace blindfuse::server_testing {
namespace {

using std::chrono::milliseconds;

constexpr char kResponseMemory[] = "blindfuse_http_memory_bytes{of=\"responses\"}";
constexpr char kCutForMemory[] = "blindfuse_http_connections_cut_total{why=\"response_memory\"}";

TEST_F(Attacks, SlowSendersAreNobodysTrouble) {
  start(few_threads());
  const std::string query = query_request(77);
  const size_t head_size = query.find("\r\n\r\n") + 4;
  Clients clients;
  std::vector<size_t> sent;
  for (size_t i = 0; i < 200; ++i) {
    // Within the head, within the body, or before a word.
    sent.push_back(i % 3 == 0 ? 0 : i % 3 == 1 ? 10 : head_size + 5);
    clients.emplace_back(url()).send(query.substr(0, sent.back()));
  }
  for (int round = 0; round < 10; ++round) {
    for (size_t i = 0; i < clients.size(); ++i) {
      ASSERT_TRUE(clients[i].send(query.substr(sent[i]++, 1)));
    }
    expect_good_clients_served();
  }
  // They were slow, and are right all the same. Eight find room in the queue at a time.
  for (size_t i = 0; i < clients.size(); ++i) {
    clients[i].send(query.substr(sent[i]));
    expect_answer(clients[i], 77);
  }
}

TEST_F(Attacks, ClientsMayLeaveAtAnyByte) {
  start(few_threads());
  const std::string query = query_request(1);
  const long owners = epoch_.use_count();
  for (size_t size = 0; size <= query.size(); size += 7) {
    RudeClient client(url());
    client.send(query.substr(0, size));
    if (size % 2 == 0) client.reset();
  }
  expect_good_clients_served();
  wait_for([&] { return metric("blindfuse_http_connections") == 0; });
  wait_for([&] { return epoch_.use_count() == owners; });
}

// The memory of bodies is for those that arrive.
TEST_F(Attacks, QueriesThatWaitHoldNoBody) {
  start(few_threads());
  control_->hold();
  RudeClient running(url());
  running.send(query_request(1));
  control_->wait_for_batches(1);
  RudeClient waiting(url());
  waiting.send(query_request(2));
  wait_for_queue(1);
  wait_for([&] { return metric("blindfuse_http_memory_bytes{of=\"requests\"}") == 0; });
  control_->release();
}

TEST_F(Attacks, ClientsMayLeaveWhileTheEngineHasTheirQuery) {
  start(few_threads(), {.batch_max = 4, .queue_max = 16});  // of which one client gets half
  Clients clients;
  double gone = 0;
  for (uint64_t seed = 0; seed < 7; ++seed) {
    LoopbackClient& stays = send_held(clients, seed);
    for (int i = 0; i < 7; ++i) {
      RudeClient client(url());
      client.send(query_request(99));
      wait_for([&] { return epoch_->scheduler().waiting_count() >= 1; });
      client.reset();
      // What it asked for does not fill the queue forever; the engine is still held.
      ++gone;
      wait_for([&] { return metric("blindfuse_queries_total{outcome=\"abandoned\"}") == gone; });
    }
    control_->release();
    expect_answer(stays, seed);
    wait_for_queue(0);
  }
  expect_good_clients_served();
}

TEST_F(Attacks, ClientsMayLeaveWhileTheyDownload) {
  start(few_threads());
  serve_next(large_database());
  const auto large = epochs_->current();
  const long owners = large.use_count();
  for (int i = 0; i < 30; ++i) {
    RudeClient client(url());
    client.send(large_hint_request());
    if (i % 3 != 0) {
      EXPECT_EQ(client.receive(true).status, 200);
    }
    if (i % 2 == 0) client.reset();
  }
  wait_for([&] { return large.use_count() == owners; });
  EXPECT_EQ(ask(large_hint_request()).body.size(), large->layout().hint_bytes());
  expect_healthy();
}

// Whoever takes nothing of a download holds an epoch no longer than the time for that.
TEST_F(Attacks, ReadersThatTakeNothingAreGivenUp) {
  ServerOptions options = few_threads();
  options.http.timeouts.write = milliseconds(500);
  options.http.timeouts.standstill = milliseconds(500);
  start(options);
  serve_next(large_database());
  const std::weak_ptr<const ServingEpoch> large = epochs_->current();
  Clients clients;
  for (int i = 0; i < 20; ++i) clients.emplace_back(url()).send(large_hint_request());
  for (auto& client : clients) EXPECT_EQ(client.receive(true).status, 200);
  expect_healthy();
  epochs_->replace(epoch_, ServedEpochs::Clock::now());
  wait_for([&] {
    epochs_->retire(ServedEpochs::Clock::now());
    return large.expired();
  });
  wait_for([&] { return metric("blindfuse_http_connections") == 0; });
  expect_good_clients_served();
}

// An epoch's matrix goes when the epoch does, however slow its clients are.
TEST_F(Attacks, SlowClientsHoldNoEpoch) {
  start(few_threads(1));  // what comes first is done first
  serve_next(large_database());
  const std::weak_ptr<const ServingEpoch> large = epochs_->current();
  LoopbackClient reader(url());
  reader.send(large_hint_request());
  LoopbackClient sender(url());
  const std::string request = large_request();
  sender.send(request.substr(0, request.size() - 10));
  ask(get_request("/health/live"));
  const SharedHintPart hint = large.lock()->database().downloads->hints.front();
  epochs_->replace(epoch_, ServedEpochs::Clock::now());
  epochs_->retire(ServedEpochs::Clock::now());
  EXPECT_TRUE(large.expired());
  // The download goes on; the queries have come too late.
  EXPECT_EQ(reader.receive().body.substr(0, hint->size()), std::string(hint->begin(), hint->end()));
  sender.send(request.substr(request.size() - 10));
  EXPECT_EQ(sender.receive().problem(), "retired-epoch");
}

TEST_F(Attacks, BodiesThatArriveHaveABound) {
  ServerOptions options = few_threads(1);  // what comes first is done first
  options.api.request_bytes_max = 1;  // so that it is what the longest, in JSON, has: 3,016 bytes
  start(options);
  const std::string request = binary_request(queries(3));
  const size_t most = request.size() - 3 * kQueryBytes + 1'200;
  Clients clients;
  LoopbackClient witness(url());
  const auto settle = [&] { EXPECT_EQ(witness.ask(get_request("/health/live")).status, 200); };
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(clients.emplace_back(url()).ask(get_request("/health/live")).status, 200);
    clients.back().send(request.substr(0, most));
    settle();
  }
  // Three times 1,200 bytes are too much by one.
  EXPECT_TRUE(clients[0].is_closed());
  for (size_t i = 1; i < 3; ++i) {
    EXPECT_EQ(clients[i].ask(request.substr(most)).body, responses(3)) << i;
    settle();
  }
  // There is room again.
  EXPECT_EQ(ask(request).body, responses(3));
  expect_good_clients_served();
}

// The bound grows with the database: one that came later has longer queries.
TEST_F(Attacks, TheBoundOfBodiesFollowsTheEpoch) {
  constexpr uint32_t kTimes = 200;
  ServerOptions options = few_threads(1);  // what comes first is done first
  options.api.request_bytes_max = 1;
  start(options);
  LoopbackClient witness(url());
  EXPECT_EQ(witness.ask(get_request("/health/live")).status, 200);
  LoadedDatabase next = tiny_database();
  next.manifest.layout.row_count = kRows * kTimes;
  next.engine = support::PlainEngine::make(kRows * kTimes, kColumns);
  next.engine->seal();
  next.epoch = EpochId(64, 'b');
  serve_next(std::move(next));
  const std::string request =
      post_request("/v1/epochs/" + EpochId(64, 'b') + "/queries", "application/octet-stream",
                   std::string(3 * kQueryBytes * kTimes, 'q'));
  LoopbackClient client(url());
  client.send(request.substr(0, request.size() - 10));
  // The rest is late, and the server has seen all except that meanwhile: it has one thread, and the
  // body fits into a few reads.
  for (int i = 0; i < 20; ++i) witness.ask(get_request("/health/live"));
  const HttpResponse response = client.ask(request.substr(request.size() - 10));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body.size(), 3 * kResponseBytes);
}

// Before the engine works for them.
TEST_F(Attacks, ResponsesInTheQueueHaveABound) {
  ServerOptions options = few_threads();
  options.api.response_bytes_max = 1;  // so that it is what the largest response takes
  // Room for all queries, whether or not the engine has begun with the first.
  start(options, {.batch_max = 4, .queue_max = 16});
  const std::string request = binary_request(queries(3));
  EXPECT_EQ(metric("blindfuse_http_memory_max_bytes{of=\"responses\"}"),
            3 * kResponseBytes + 17 + 3 * (base64_of(std::string(kResponseBytes, 'r')).size() + 3));
  control_->hold();
  Clients clients;
  for (int i = 0; i < 2; ++i) {
    clients.emplace_back(url()).send(request);
    wait_for_metric(kResponseMemory, static_cast<double>(clients.size() * 3 * kResponseBytes));
  }
  const HttpResponse refused = ask(request);
  expect_problem(refused, 503, "busy");
  EXPECT_EQ(refused.header("retry-after"), "1");
  EXPECT_NE(refused.detail().find("memory"), std::string::npos) << refused.detail();
  EXPECT_EQ(metric("blindfuse_queries_total{outcome=\"memory_full\"}"), 3);
  control_->release();
  for (auto& client : clients) EXPECT_EQ(client.receive().body, responses(3));
  wait_for([&] { return metric(kResponseMemory) == 0; });
  expect_good_clients_served();
}

// A client that takes a response slowly makes room for a new one: who stands still, though others
// began before.
TEST_F(Attacks, ResponsesThatAreSentHaveABound) {
  for (const bool first_takes_some : {false, true}) {
    ServerOptions options = few_threads(1);
    options.api.response_bytes_max = 1;
    start_large_with_small_buffers(options);
    Clients clients;
    for (int i = 0; i < 2; ++i) add_reader(clients);
    if (first_takes_some) {
      for (size_t taken = 0; taken < kLargeResponses * 2 / 3;) taken += clients[0].take_some();
    }
    EXPECT_EQ(ask(large_request()).body.size(), kLargeResponses);
    EXPECT_EQ(metric(kCutForMemory), 1);
    EXPECT_TRUE(clients[first_takes_some ? 1 : 0].is_cut_off());
    EXPECT_EQ(clients[first_takes_some ? 0 : 1].receive().body.size(), kLargeResponses);
    wait_for([&] { return metric(kResponseMemory) == 0; });
    expect_good_clients_served();
  }
}

// A request that is refused anyway closes no other connection.
TEST_F(Attacks, NobodysResponseIsCutOffForARequestThatIsRefused) {
  ServerOptions options = few_threads();
  options.api.response_bytes_max = 1;
  start_large_with_small_buffers(options);
  Clients clients;
  for (int i = 0; i < 2; ++i) add_reader(clients);
  const std::string nonsense(3 * base64_of(queries(1)).size(), '?');
  EXPECT_EQ(ask(post_request(large_path("/queries"), "application/json", nonsense)).problem(),
            "malformed-queries");
  EXPECT_EQ(metric(kCutForMemory), 0);
  for (auto& client : clients) EXPECT_EQ(client.receive().body.size(), kLargeResponses);
}

TEST_F(Attacks, NobodysResponseIsCutOffForAQueueThatIsFull) {
  // Of the small database: one runs, and four wait, as many as one client may have there.
  constexpr uint64_t kReaders = 3, kQueries = 5;
  ServerOptions options = few_threads();
  options.api.response_bytes_max = kReaders * kLargeResponses + kQueries * kResponseBytes;
  start_large_with_small_buffers(options);
  Clients clients, readers;
  send_held(clients, 0);
  for (uint64_t seed = 1; seed < kQueries; ++seed) send_waiting(clients, seed, seed);
  for (uint64_t i = 0; i < kReaders; ++i) add_reader(readers);
  EXPECT_EQ(ask(query_request(99)).problem(), "busy");
  EXPECT_EQ(metric(kCutForMemory), 0);
  control_->release();
  for (uint64_t seed = 0; seed < kQueries; ++seed) expect_answer(clients[seed], seed);
  for (auto& reader : readers) EXPECT_EQ(reader.receive().body.size(), kLargeResponses);
}

// A connection that lingers, since its client has sent more, holds no memory for a response.
TEST_F(Attacks, AResponseThatIsCutOffHoldsNoMemory) {
  ServerOptions options = few_threads();
  options.http.timeouts.write = milliseconds(100);
  options.http.timeouts.linger = std::chrono::hours(1);
  options.http.timeouts.drain = milliseconds(100);
  start_large_with_small_buffers(options);
  LoopbackClient client(url(), 4'096);
  client.send(large_request() + "G");
  wait_for_metric("blindfuse_http_connections_cut_total{why=\"slow_reader\"}", 1);
  wait_for([&] { return metric(kResponseMemory) == 0; });
  EXPECT_EQ(metric("blindfuse_http_connections"), 1) << "it lingers";
}

TEST_F(Attacks, AThousandIdleConnectionsAreNobodysTrouble) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const rlimit more{limit.rlim_max, limit.rlim_max};
  setrlimit(RLIMIT_NOFILE, &more);
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < 2500)
    GTEST_SKIP() << "needs 2500 descriptors; the hard limit is " << limit.rlim_cur;
  ServerOptions options = few_threads();
  options.http.connections_max = 1100;
  options.http.timeouts.idle = std::chrono::minutes(10);
  start(options);
  Clients clients;
  for (int i = 0; i < 1000; ++i) {
    clients.emplace_back(url());
    if (i % 2 == 0) {
      EXPECT_EQ(clients.back().ask(get_request("/health/live")).status, 200);
    }
  }
  expect_good_clients_served();
  EXPECT_GE(metric("blindfuse_http_connections"), 1000);
  // Any of them may go on.
  for (size_t i = 0; i < clients.size(); i += 99) {
    clients[i].send(query_request(i));
    expect_answer(clients[i], i);
  }
  // And ever more push out the silent ones, not those who ask.
  LoopbackClient asks(url());
  for (int i = 0; i < 500; ++i) {
    clients.emplace_back(url());
    if (i % 50 == 0) {
      EXPECT_EQ(asks.ask(get_request("/health/live")).status, 200);
    }
  }
  expect_good_clients_served();
  EXPECT_LE(metric("blindfuse_http_connections"), 1101);
}

TEST_F(Attacks, StopsInTheMiddleOfAllThat) {
  for (int round = 0; round < 5; ++round) {
    ServerOptions options = few_threads();
    options.http.timeouts.body = milliseconds(500);
    options.http.timeouts.head = milliseconds(500);
    options.http.timeouts.write = milliseconds(500);
    options.http.timeouts.standstill = milliseconds(500);
    options.http.timeouts.linger = milliseconds(200);
    start(options);
    serve_next(large_database());
    const std::string query = query_request(3);
    const std::string address = url();
    Clients clients;
    for (size_t i = 0; i < 60; ++i) {
      LoopbackClient& client = clients.emplace_back(url());
      if (i % 6 == 1) client.send(query.substr(0, 20));
      if (i % 6 == 2) client.send(query.substr(0, query.size() - 1));
      if (i % 6 == 3) client.send(large_hint_request());
      if (i % 6 == 4) client.send("nonsense\r\n\r\n" + std::string(100'000, 'x'));
      if (i % 6 == 5) client.send(get_request("/health/live"));
    }
    std::vector<std::future<int>> good;
    // Each of them has an answer before the server stops, however slow the machine is.
    std::atomic<int> served = 0;
    for (uint64_t c = 0; c < 4; ++c) {
      good.push_back(std::async(std::launch::async, [&, c] {
        int answers = 0;
        try {
          for (uint64_t seed = c * 1000;; ++seed) {
            LoopbackClient client(address);
            client.send(query_request(seed));
            const HttpResponse response = client.receive();
            if (response.status != 200) continue;
            EXPECT_EQ(response.body, expected_response(random_query(seed)));
            if (++answers == 1) ++served;
          }
        } catch (const std::runtime_error&) {
          // No process listens any more.
        }
        return answers;
      }));
    }
    wait_for([&] { return served == 4; });
    auto stopped = std::async(std::launch::async, [&] { server_->stop(); });
    EXPECT_EQ(stopped.wait_for(kLong), std::future_status::ready);
    stopped.get();
    for (auto& client : good) EXPECT_GT(client.get(), 0);
    EXPECT_THROW(LoopbackClient{address}, std::runtime_error);
  }
}

}  // namespace
}  // namespace blindfuse::server_testing
