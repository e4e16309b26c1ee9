// New epochs of a real directory, while clients ask.
#include <unistd.h>

#include <array>
#include <deque>
#include <fstream>

#include "tests/server/reloading_server.h"

namespace blindfuse::server_testing {
namespace {

// A client that has the hints of the epoch before is answered right, then and later.
TEST_F(Reloader, ServesANewEpochNextToTheOneBeforeDuringItsGrace) {
  const EpochId first = build(1);
  serve(kOften, std::chrono::seconds(2));
  const TemporaryFolder cache;
  Client client = connect(cache);
  EXPECT_EQ(client.get("key 3"), value(3, 1));
  const EpochId second = build(2);
  wait_for_epoch(second);
  expect_version(2);
  expect_loads(1, 0);
  const auto during = client.get("key 3");
  EXPECT_TRUE(during == value(3, 1) || during == value(3, 2)) << during.value_or("nothing");
  wait_for([&] { return epochs_->all().size() == 1; });
  EXPECT_EQ(client.get("key 3"), value(3, 2)) << "it was told to look again";
  const HttpResponse response = ask(get_request("/v1/epochs/" + first + "/shards"));
  EXPECT_EQ(response.problem(), "retired-epoch");
  EXPECT_EQ(response.epoch(), second);
}

// Which takes minutes where it is large.
TEST_F(Reloader, RetiresAnEpochWhileItLoadsAnother) {
  const EpochId first = build(1);
  std::vector<size_t> epoch_counts;
  before_load_ = [&] { clock_.jump(std::chrono::seconds(61)); };
  after_step_ = [&] { epoch_counts.push_back(epochs_->all().size()); };
  by_hand_ = true;
  serve(kNever, std::chrono::seconds(60));
  const EpochId second = build(2);
  reloader_->request();
  wait_for_epoch(second);
  EXPECT_EQ(hint_status(first), 200);
  const EpochId third = build(3);
  reloader_->request();
  wait_for_epoch(third);
  EXPECT_EQ(epoch_counts, std::vector<size_t>({1, 1})) << "those before, in their grace";
  EXPECT_EQ(hint_status(first), 410);
}

TEST_F(Reloader, LooksWhenItIsAskedTo) {
  build(1);
  serve(kNever);
  const EpochId second = build(2);
  request_and_wait();
  EXPECT_EQ(current(), second);
  const EpochId third = build(3);
  // Without a request.
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  EXPECT_EQ(current(), second);
  request_and_wait();
  EXPECT_EQ(current(), third);
  expect_loads(2, 0);
}

TEST_F(Reloader, LoadsNothingThatItHas) {
  build(1);
  serve_by_hand();
  for (int i = 0; i < 5; ++i) reloader_->request();
  // The same manifest, written again.
  std::ofstream(root() / "new") << read_whole(manifest_file());
  std::filesystem::rename(root() / "new", manifest_file());
  clock_.advance(std::chrono::seconds(1));
  EXPECT_EQ(load_count_, 0);
  expect_loads(0, 0);
}

// A build that changes only the signature publishes the same epoch again.
TEST_F(Reloader, TakesAnotherSignatureWithoutLoadingTheEpoch) {
  build(1);
  serve(kOften);
  const auto served = [&] { return ask(get_request("/v1/database")); };
  const std::string tag = served().header("etag");
  const auto held = epochs_->current();
  for (int i = 0; i < 2; ++i) {
    const SigningKey key = SigningKey::make(fill_from_system);
    build(1, &key);
    const std::string text = read_whole(manifest_file());
    wait_for([&] { return served().body == text; });
    EXPECT_EQ(parse_manifest(served().body).signature->signer, key.public_key());
    EXPECT_NE(served().header("etag"), tag) << "a cache must not have it for the one before";
  }
  EXPECT_EQ(epochs_->current(), held);
  EXPECT_EQ(load_count_, 0);
  expect_loads(0, 0);
  expect_version(1);
}

// The read that it is in may take forever; where it returns, nothing more is read.
TEST_F(Reloader, LoadsNoFurtherThanTheNextStepWhenItStops) {
  const EpochId first = build(1);
  std::promise<void> begun, go_on;
  before_load_ = [&] {
    begun.set_value();
    go_on.get_future().wait();
  };
  serve(kNever);
  build(2);
  reloader_->request();
  begun.get_future().wait();
  EXPECT_FALSE(reloader_->stop(std::chrono::milliseconds(0)));
  go_on.set_value();
  EXPECT_TRUE(reloader_->stop(std::chrono::minutes(1)));
  EXPECT_EQ(load_count_, 1);
  EXPECT_EQ(current(), first);
  expect_loads(0, 0);
}

// What was built after the first epoch was loaded and before anyone looked.
TEST_F(Reloader, LooksAtTheBeginning) {
  build(1);
  const BatchLimits limits;
  ServedEpochs epochs(
      std::make_shared<const ServingEpoch>(builder_testing::load(root()), limits, &metrics_));
  const EpochId second = build(2);
  const EpochReloader reloader(epochs, metrics_, limits,
                               [this](const LoadedDatabase&, const std::function<void()>&) {
                                 return builder_testing::load(root());
                               },
                               {.directory = root(), .watch_interval = kNever});
  wait_for([&] { return epochs.current()->database().epoch == second; });
}

// However many have downloads that their clients do not take.
TEST_F(Reloader, HasNoMoreEpochsInMemoryThanItMay) {
  constexpr int kEpochs = 8;
  EpochId served = build(1);
  serve(kNever);
  std::deque<LoopbackClient> readers;
  for (int n = 2; n <= kEpochs; ++n) {
    readers.emplace_back(server_->url(), 4'096);
    readers.back().send(get_request("/v1/epochs/" + served + "/hint"));
    readers.back().wait_until_readable();
    served = build(n);
    request_and_wait();
    EXPECT_EQ(current(), served);
    EXPECT_LE(epochs_->in_memory().size(), 3u);
    EXPECT_LE(metric("blindfuse_epochs"), 3);
  }
  EXPECT_EQ(metric("blindfuse_http_connections_cut_total{why=\"epochs\"}"), kEpochs - 3);
  for (size_t left = readers.size(); LoopbackClient & reader : readers) {
    // The two youngest have all the time that they want.
    EXPECT_EQ(reader.is_cut_off(), left-- > 2);
  }
}

TEST_F(Reloader, ReplacesEpochsWhileClientsAsk) {
  build(1);
  serve(kOften, std::chrono::seconds(0));
  constexpr int kClients = 3;
  std::atomic<bool> over = false;
  std::array<std::atomic<int>, kClients> answers{};
  std::vector<std::future<void>> clients;
  for (int c = 0; c < kClients; ++c) {
    clients.push_back(std::async(std::launch::async, [&, c] {
      const TemporaryFolder cache;
      Client client = connect(cache);
      for (int i = c; !over; i = (i + 7) % 200) {
        std::optional<std::string> answer;
        try {
          answer = client.get("key " + std::to_string(i));
        } catch (const std::exception&) {
          continue;  // the epoch changed twice within a look-up
        }
        bool right = false;
        for (int n = 1; n <= 6; ++n) right = right || answer == value(i, n);
        EXPECT_TRUE(right) << i << ": " << answer.value_or("nothing");
        ++answers[static_cast<size_t>(c)];
      }
    }));
  }
  for (int n = 2; n <= 6; ++n) wait_for_epoch(build(n));
  for (const auto& count : answers) wait_for([&] { return count > 0; });
  over = true;
  for (auto& client : clients) client.get();
  expect_version(6);
}

double resident_megabytes() {
  std::ifstream file("/proc/self/statm");
  double all = 0;
  double resident = 0;
  file >> all >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

// As after a flood of requests: free memory between blocks that stay.
TEST_F(Reloader, GivesFreeMemoryBackToTheSystem) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers have an allocator of their own";
#endif
  build(1);
  serve_by_hand();
  std::vector<std::vector<char>> blocks;
  for (int i = 0; i < 4'000; ++i) blocks.emplace_back(32'768, 'x');
  for (size_t i = 0; i < blocks.size(); i += 2) std::vector<char>().swap(blocks[i]);
  const double before = resident_megabytes();
  clock_.advance(std::chrono::minutes(1));
  EXPECT_LT(resident_megabytes(), before - 50) << "of 64 MB";
}

}  // namespace
}  // namespace blindfuse::server_testing
