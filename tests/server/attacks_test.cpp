// Hostile and unlucky clients, and good ones next to them, which must not notice.
#include "tests/server/attacks.h"

#include <sys/resource.h>

#include <future>

namespace blindfuse::server_testing {
namespace {

using std::chrono::milliseconds;

TEST_F(Attacks, SlowSendersAreNobodysTrouble) {
  start(few_threads());
  const std::string query = query_request(77);
  const size_t head_size = query.find("\r\n\r\n") + 4;
  Clients clients;
  std::vector<size_t> sent;
  for (size_t i = 0; i < 200; ++i) {
    // Half of them within the head, half within the body.
    sent.push_back(i % 2 == 0 ? 10 : head_size + 5);
    add(clients).send(query.substr(0, sent.back()));
  }
  for (int round = 0; round < 10; ++round) {
    for (size_t i = 0; i < clients.size(); ++i) {
      ASSERT_TRUE(clients[i]->send(query.substr(sent[i]++, 1)));
    }
    expect_good_clients_served();
  }
  // They were slow, and are right all the same. Eight find room in the queue at a time.
  for (size_t i = 0; i < clients.size(); ++i) {
    clients[i]->send(query.substr(sent[i]));
    expect_answer(*clients[i], 77);
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
  wait_for([&] { return epoch_->scheduler().waiting_count() == 1; });
  wait_for([&] { return metric("blindfuse_http_memory_bytes{of=\"requests\"}") == 0; });
  control_->release();
}

TEST_F(Attacks, ClientsMayLeaveWhileTheEngineHasTheirQuery) {
  start(few_threads(), {.batch_max = 4, .queue_max = 16});  // of which one client gets half
  control_->hold();
  LoopbackClient stays(url());
  stays.send(query_request(1));
  control_->wait_for_batches(1);
  for (int i = 0; i < 50; ++i) {
    RudeClient client(url());
    client.send(query_request(2));
    wait_for([&] { return epoch_->scheduler().waiting_count() >= 1; });
    client.reset();
    // What it asked for does not fill the queue forever; the engine is still held.
    const double gone = i + 1;
    wait_for([&] { return metric("blindfuse_queries_total{outcome=\"abandoned\"}") == gone; });
    if (i % 7 == 6) {
      control_->release();
      expect_answer(stays, 1);
      wait_for([&] { return epoch_->scheduler().waiting_count() == 0; });
      const size_t batches = control_->batches.size();
      control_->hold();
      stays.send(query_request(1));
      control_->wait_for_batches(batches + 1);
    }
  }
  control_->release();
  expect_answer(stays, 1);
  expect_good_clients_served();
}

TEST_F(Attacks, ClientsMayLeaveWhileTheyDownload) {
  ServerOptions options = few_threads();
  start(options);
  epochs_->replace(std::make_shared<const ServingEpoch>(large_database(), BatchLimits{}),
                   ServedEpochs::Clock::now() + std::chrono::hours(1));
  const auto large = epochs_->current();
  const long owners = large.use_count();
  const std::string download = get_request("/v1/epochs/" + large->database().epoch + "/hint");
  for (int i = 0; i < 30; ++i) {
    RudeClient client(url());
    client.send(download);
    if (i % 3 != 0) {
      EXPECT_EQ(client.receive(true).status, 200);
    }
    if (i % 2 == 0) client.reset();
  }
  wait_for([&] { return large.use_count() == owners; });
  EXPECT_EQ(ask(download).body.size(), large->layout().hint_bytes());
  expect_healthy();
}

// Whoever takes nothing of a download holds an epoch no longer than the time for that.
TEST_F(Attacks, ReadersThatTakeNothingAreGivenUp) {
  ServerOptions options = few_threads();
  options.http.timeouts.write = milliseconds(500);
  options.http.timeouts.standstill = milliseconds(500);
  start(options);
  epochs_->replace(std::make_shared<const ServingEpoch>(large_database(), BatchLimits{}),
                   ServedEpochs::Clock::now() + std::chrono::hours(1));
  const std::weak_ptr<const ServingEpoch> large = epochs_->current();
  const std::string download =
      get_request("/v1/epochs/" + large.lock()->database().epoch + "/hint");
  Clients clients;
  for (int i = 0; i < 20; ++i) add(clients).send(download);
  for (auto& client : clients) EXPECT_EQ(client->receive(true).status, 200);
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
  ServerOptions options = few_threads();
  options.http.threads = 1;  // what comes first is done first
  start(options);
  epochs_->replace(std::make_shared<const ServingEpoch>(large_database(), BatchLimits{}),
                   ServedEpochs::Clock::now() + std::chrono::hours(1));
  const std::weak_ptr<const ServingEpoch> large = epochs_->current();
  const EpochId id = large.lock()->database().epoch;
  const std::string body(large.lock()->layout().query_bytes(), 'q');
  LoopbackClient reader(url());
  reader.send(get_request("/v1/epochs/" + id + "/hint"));
  LoopbackClient sender(url());
  const std::string request =
      post_request("/v1/epochs/" + id + "/queries", "application/octet-stream", body);
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
  ServerOptions options = few_threads();
  options.http.threads = 1;           // what comes first is done first
  options.api.request_bytes_max = 1;  // so that it is what the longest, in JSON, has: 3,016 bytes
  start(options);
  std::string body;
  std::string responses;
  for (const uint64_t seed : {5, 6, 7}) {
    body += pack(random_query(seed), kQueryBits);
    responses += expected_response(random_query(seed));
  }
  const std::string request = binary_request(body);
  const size_t most = request.size() - body.size() + 1'200;
  Clients clients;
  LoopbackClient witness(url());
  const auto settle = [&] { EXPECT_EQ(witness.ask(get_request("/health/live")).status, 200); };
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(add(clients).ask(get_request("/health/live")).status, 200);
    clients.back()->send(request.substr(0, most));
    settle();
  }
  // Three times 1,200 bytes are too much by one.
  EXPECT_TRUE(clients[0]->is_closed());
  for (size_t i = 1; i < 3; ++i) {
    clients[i]->send(request.substr(most));
    EXPECT_EQ(clients[i]->receive().body, responses) << i;
    settle();
  }
  // There is room again.
  EXPECT_EQ(add(clients).ask(request).body, responses);
  expect_good_clients_served();
}

// The bound grows with the database: one that came later has longer queries.
TEST_F(Attacks, TheBoundOfBodiesFollowsTheEpoch) {
  constexpr uint32_t kTimes = 200;
  ServerOptions options = few_threads();
  options.http.threads = 1;  // what comes first is done first
  options.api.request_bytes_max = 1;
  start(options);
  LoopbackClient witness(url());
  EXPECT_EQ(witness.ask(get_request("/health/live")).status, 200);
  LoadedDatabase next = tiny_database();
  next.manifest.layout.row_count = kRows * kTimes;
  next.engine = support::PlainEngine::make(kRows * kTimes, kColumns);
  next.engine->seal();
  next.epoch = EpochId(64, 'b');
  epochs_->replace(std::make_shared<const ServingEpoch>(std::move(next), BatchLimits{}),
                   ServedEpochs::Clock::now());
  const std::string body(3 * kQueryBytes * kTimes, 'q');
  const std::string request =
      post_request("/v1/epochs/" + EpochId(64, 'b') + "/queries", "application/octet-stream", body);
  LoopbackClient client(url());
  client.send(request.substr(0, request.size() - 10));
  // The rest is late, and the server has seen all except that meanwhile: it has one thread, and the
  // body fits into a few reads.
  for (int i = 0; i < 20; ++i) witness.ask(get_request("/health/live"));
  client.send(request.substr(request.size() - 10));
  const HttpResponse response = client.receive();
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body.size(), 3 * kResponseBytes);
}

// Before the engine works for them.
TEST_F(Attacks, ResponsesInTheQueueHaveABound) {
  ServerOptions options = few_threads();
  options.api.response_bytes_max = 1;  // so that it is what the largest response takes
  // Room for all queries, whether or not the engine has begun with the first.
  start(options, {.batch_max = 4, .queue_max = 16});
  const std::string queries = pack(random_query(1), kQueryBits) +
                              pack(random_query(2), kQueryBits) + pack(random_query(3), kQueryBits);
  const std::string responses = expected_response(random_query(1)) +
                                expected_response(random_query(2)) +
                                expected_response(random_query(3));
  const std::string request = binary_request(queries);
  EXPECT_EQ(metric("blindfuse_http_memory_max_bytes{of=\"responses\"}"),
            3 * kResponseBytes + 17 + 3 * (base64_of(std::string(kResponseBytes, 'r')).size() + 3));
  control_->hold();
  Clients clients;
  for (int i = 0; i < 2; ++i) {
    add(clients).send(request);
    wait_for([&] {
      return metric("blindfuse_http_memory_bytes{of=\"responses\"}") ==
             static_cast<double>(clients.size() * 3 * kResponseBytes);
    });
  }
  const HttpResponse refused = ask(request);
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.problem(), "busy");
  EXPECT_EQ(refused.header("retry-after"), "1");
  EXPECT_NE(refused.detail().find("memory"), std::string::npos) << refused.detail();
  EXPECT_EQ(metric("blindfuse_queries_total{outcome=\"memory_full\"}"), 3);
  control_->release();
  for (const auto& client : clients) EXPECT_EQ(client->receive().body, responses);
  wait_for([&] { return metric("blindfuse_http_memory_bytes{of=\"responses\"}") == 0; });
  expect_good_clients_served();
}

// A client that takes a response slowly makes room for a new one.
TEST_F(Attacks, ResponsesThatAreSentHaveABound) {
  ServerOptions options = few_threads();
  options.api.response_bytes_max = 1;
  start_with_small_buffers(options);
  epochs_->replace(std::make_shared<const ServingEpoch>(large_database(), BatchLimits{}),
                   ServedEpochs::Clock::now());
  const Layout layout = epochs_->current()->layout();
  const std::string request =
      post_request("/v1/epochs/" + epochs_->current()->database().epoch + "/queries",
                   "application/octet-stream", std::string(3 * layout.query_bytes(), 'q'));
  Clients clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<LoopbackClient>(url(), 4'096));
    clients.back()->send(request);
    clients.back()->wait_until_readable();
  }
  EXPECT_EQ(metric("blindfuse_http_connections_cut_total{why=\"response_memory\"}"), 1);
  EXPECT_TRUE(clients[0]->is_cut_off());
  for (int i : {1, 2}) EXPECT_EQ(clients[i]->receive().body.size(), 3 * layout.response_bytes());
  wait_for([&] { return metric("blindfuse_http_memory_bytes{of=\"responses\"}") == 0; });
  expect_good_clients_served();
}

// It is who stands still that makes room, though others began before.
TEST_F(Attacks, WhoTakesSomeOfAResponseIsNotCutOffForWhoTakesNothing) {
  ServerOptions options = default_options();
  options.http.threads = 1;
  options.api.response_bytes_max = 1;
  start_with_small_buffers(options);
  epochs_->replace(std::make_shared<const ServingEpoch>(large_database(), BatchLimits{}),
                   ServedEpochs::Clock::now());
  const Layout layout = epochs_->current()->layout();
  const std::string request =
      post_request("/v1/epochs/" + epochs_->current()->database().epoch + "/queries",
                   "application/octet-stream", std::string(3 * layout.query_bytes(), 'q'));
  Clients clients;
  for (int i = 0; i < 2; ++i) {
    clients.push_back(std::make_unique<LoopbackClient>(url(), 4'096));
    clients.back()->send(request);
    clients.back()->wait_until_readable();
  }
  for (size_t taken = 0; taken < 2 * layout.response_bytes();) taken += clients[0]->take_some();
  LoopbackClient comes(url());
  EXPECT_EQ(comes.ask(request).body.size(), 3 * layout.response_bytes());
  EXPECT_EQ(metric("blindfuse_http_connections_cut_total{why=\"response_memory\"}"), 1);
  EXPECT_TRUE(clients[1]->is_cut_off());
  EXPECT_EQ(clients[0]->receive().body.size(), 3 * layout.response_bytes());
}

// A request that is refused anyway closes no other connection.
TEST_F(Attacks, NobodysResponseIsCutOffForARequestThatIsRefused) {
  ServerOptions options = few_threads();
  options.api.response_bytes_max = 1;
  start_with_small_buffers(options);
  epochs_->replace(std::make_shared<const ServingEpoch>(large_database(), BatchLimits{}),
                   ServedEpochs::Clock::now());
  const Layout layout = epochs_->current()->layout();
  const std::string path = "/v1/epochs/" + epochs_->current()->database().epoch + "/queries";
  Clients clients;
  for (int i = 0; i < 2; ++i) {
    clients.push_back(std::make_unique<LoopbackClient>(url(), 4'096));
    clients.back()->send(
        post_request(path, "application/octet-stream", std::string(3 * layout.query_bytes(), 'q')));
    clients.back()->wait_until_readable();
  }
  const std::string nonsense(3 * base64_of(std::string(layout.query_bytes(), 'q')).size(), '?');
  EXPECT_EQ(ask(post_request(path, "application/json", nonsense)).problem(), "malformed-queries");
  EXPECT_EQ(metric("blindfuse_http_connections_cut_total{why=\"response_memory\"}"), 0);
  for (const auto& client : clients) {
    EXPECT_EQ(client->receive().body.size(), 3 * layout.response_bytes());
  }
}

TEST_F(Attacks, NobodysResponseIsCutOffForAQueueThatIsFull) {
  LoadedDatabase large = large_database();
  const Layout layout = large.manifest.layout;
  // Of the small database: one runs, and four wait, as many as one client may have there.
  constexpr uint64_t kReaders = 3, kQueries = 5;
  ServerOptions options = few_threads();
  options.api.response_bytes_max =
      kReaders * 3 * layout.response_bytes() + kQueries * kResponseBytes;
  start_with_small_buffers(options);
  const std::string path = "/v1/epochs/" + large.epoch + "/queries";
  epochs_->replace(std::make_shared<const ServingEpoch>(std::move(large), BatchLimits{}),
                   ServedEpochs::Clock::now() + std::chrono::hours(1));
  control_->hold();
  Clients clients;
  for (uint64_t seed = 0; seed < kQueries; ++seed) {
    add(clients).send(query_request(seed));
    if (seed == 0) control_->wait_for_batches(1);
    wait_for_queue(seed);
  }
  Clients readers;
  for (uint64_t i = 0; i < kReaders; ++i) {
    readers.push_back(std::make_unique<LoopbackClient>(url(), 4'096));
    readers.back()->send(
        post_request(path, "application/octet-stream", std::string(3 * layout.query_bytes(), 'q')));
    readers.back()->wait_until_readable();
  }
  EXPECT_EQ(ask(query_request(99)).problem(), "busy");
  EXPECT_EQ(metric("blindfuse_http_connections_cut_total{why=\"response_memory\"}"), 0);
  control_->release();
  for (uint64_t seed = 0; seed < kQueries; ++seed) expect_answer(*clients[seed], seed);
  for (const auto& reader : readers) {
    EXPECT_EQ(reader->receive().body.size(), 3 * layout.response_bytes());
  }
}

// A connection that lingers, since its client has sent more, holds no memory for a response.
TEST_F(Attacks, AResponseThatIsCutOffHoldsNoMemory) {
  ServerOptions options = few_threads();
  options.http.timeouts.write = milliseconds(100);
  options.http.timeouts.linger = std::chrono::hours(1);
  options.http.timeouts.drain = milliseconds(100);
  start_with_small_buffers(options);
  epochs_->replace(std::make_shared<const ServingEpoch>(large_database(), BatchLimits{}),
                   ServedEpochs::Clock::now());
  LoopbackClient client(url(), 4'096);
  client.send(post_request("/v1/epochs/" + epochs_->current()->database().epoch + "/queries",
                           "application/octet-stream",
                           std::string(3 * epochs_->current()->layout().query_bytes(), 'q')) +
              "G");
  wait_for(
      [&] { return metric("blindfuse_http_connections_cut_total{why=\"slow_reader\"}") == 1; });
  wait_for([&] { return metric("blindfuse_http_memory_bytes{of=\"responses\"}") == 0; });
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
    add(clients);
    if (i % 2 == 0) {
      EXPECT_EQ(clients.back()->ask(get_request("/health/live")).status, 200);
    }
  }
  expect_good_clients_served();
  EXPECT_GE(metric("blindfuse_http_connections"), 1000);
  // Any of them may go on.
  for (size_t i = 0; i < clients.size(); i += 99) {
    clients[i]->send(query_request(i));
    expect_answer(*clients[i], i);
  }
  // And ever more push out the silent ones, not those who ask.
  LoopbackClient asks(url());
  for (int i = 0; i < 500; ++i) {
    add(clients);
    if (i % 50 == 0) {
      EXPECT_EQ(asks.ask(get_request("/health/live")).status, 200);
    }
  }
  expect_good_clients_served();
  EXPECT_LE(metric("blindfuse_http_connections"), 1101);
}

TEST_F(Attacks, AFullQueueSaysSoAtOnce) {
  start(few_threads(), {.batch_max = 4, .queue_max = 16});  // of which one client gets half
  control_->hold();
  LoopbackClient running(url());
  running.send(query_request(0));
  control_->wait_for_batches(1);
  Clients waiting;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    add(waiting).send(query_request(seed));
    wait_for_queue(seed);
  }
  // The engine does nothing all the while.
  LoopbackClient refused(url());
  for (int i = 0; i < 100; ++i) {
    const HttpResponse response = refused.ask(query_request(99));
    EXPECT_EQ(response.status, 503);
    EXPECT_EQ(response.problem(), "busy");
    EXPECT_TRUE(response.has("retry-after"));
  }
  control_->release();
  expect_answer(running, 0);
  for (uint64_t seed = 1; seed <= 8; ++seed) expect_answer(*waiting[seed - 1], seed);
  expect_good_clients_served();
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
    epochs_->replace(std::make_shared<const ServingEpoch>(large_database(), BatchLimits{}),
                     ServedEpochs::Clock::now() + std::chrono::hours(1));
    const std::string download = get_request("/v1/epochs/" + EpochId(64, 'a') + "/hint");
    const std::string query = query_request(3);
    const std::string address = url();
    Clients clients;
    for (size_t i = 0; i < 60; ++i) {
      LoopbackClient& client = add(clients);
      if (i % 6 == 1) client.send(query.substr(0, 20));
      if (i % 6 == 2) client.send(query.substr(0, query.size() - 1));
      if (i % 6 == 3) client.send(download);
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
