// New epochs of a real directory, good ones and bad ones, while clients ask.
#include "host/server/serving/epoch_reloader.h"

#include <blindfuse/client.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <condition_variable>
#include <fstream>
#include <future>
#include <mutex>
#include <new>

#include "host/database/directory.h"
#include "host/server/database_server.h"
#include "src/base/errors.h"
#include "tests/publish/builder_testing.h"
#include "tests/server/loopback_client.h"

namespace blindfuse::server_testing {
namespace {

using builder_testing::look_up;
using builder_testing::Pairs;
using builder_testing::read_whole;
using builder_testing::TemporaryFolder;

constexpr auto kNever = std::chrono::milliseconds(0);
constexpr auto kOften = std::chrono::milliseconds(20);
constexpr auto kWheneverTheClockMoves = std::chrono::milliseconds(1);

// Time that passes when a test says so.
class ReloaderClock {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  ReloadOptions::Clock clock() {
    return [this] { return read(); };
  }

  void jump(std::chrono::seconds by) {
    const std::lock_guard lock(mutex_);
    now_ += by;
  }
  // Returns once the reloader has done all that is due at the new time.
  void advance(std::chrono::seconds by) {
    // It reads the clock up to six times whenever it looks around. Before the twelfth time from
    // here on it has looked around once, from beginning to end.
    constexpr uint64_t kReads = 12;
    std::unique_lock lock(mutex_);
    now_ += by;
    const uint64_t enough = read_count_ + kReads;
    ASSERT_TRUE(
        changed_.wait_for(lock, std::chrono::seconds(60), [&] { return read_count_ >= enough; }));
  }

 private:
  TimePoint read() {
    const std::lock_guard lock(mutex_);
    ++read_count_;
    changed_.notify_all();
    return now_;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  TimePoint now_ = TimePoint() + std::chrono::hours(1'000);
  uint64_t read_count_ = 0;
};

// No file can be opened, by any thread, as long as this lives.
class NoDescriptors {
 public:
  NoDescriptors() {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    const rlimit none{.rlim_cur = 0, .rlim_max = before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  ~NoDescriptors() { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

class Reloader : public ::testing::Test {
 protected:
  // Version `n` of the pairs, as the directory's next epoch.
  EpochId build(int n, const SigningKey* key = nullptr) const {
    Pairs pairs;
    for (int i = 0; i < 200; ++i) {
      pairs.emplace_back("key " + std::to_string(i), value(i, n));
    }
    BuildOptions options;
    options.shard_count = 2;
    options.lwe = find_lwe_params("lwe-1288");
    options.signing_key = key;
    return builder_testing::build(pairs, root(), options).epoch;
  }
  static std::string value(int i, int n) {
    return "value " + std::to_string(i) + " of " + std::to_string(n + 1000);
  }

  void serve(std::chrono::milliseconds watch, std::chrono::seconds grace = std::chrono::hours(1),
             ReloadOptions::Clock clock = std::chrono::steady_clock::now) {
    const BatchLimits limits;
    epochs_ = std::make_unique<ServedEpochs>(
        std::make_shared<const ServingEpoch>(builder_testing::load(root()), limits, &metrics_));
    ServerOptions options;
    options.http.threads = 2;
    http::ListeningSocket socket({});
    // Otherwise the kernel takes a hint off the server's hands.
    const int bytes = 4'096;
    ASSERT_EQ(setsockopt(socket.fd(), SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes), 0);
    server_ = std::make_unique<DatabaseServer>(*epochs_, metrics_, std::move(socket), options);
    reloader_ = std::make_unique<EpochReloader>(
        *epochs_, metrics_, limits,
        [this](const LoadedDatabase&, const std::function<void()>& on_step) {
          ++load_count_;
          if (before_load_) before_load_();
          on_step();
          if (after_step_) after_step_();
          return builder_testing::load(root());
        },
        ReloadOptions{.directory = root(),
                      .grace = grace,
                      .watch_interval = watch,
                      .end_downloads =
                          [this](const EpochDownloads& downloads) {
                            return server_->end_downloads(downloads);
                          },
                      .on_device_lost = [this](const std::string&) { device_lost_.set_value(); },
                      .clock = std::move(clock)});
    // Otherwise its first look may find what the test does next, half done.
    reloader_->wait_until_idle();
  }

  HttpResponse ask(const std::string& request) const {
    return LoopbackClient(server_->url()).ask(request);
  }
  EpochId current() const {
    return nlohmann::json::parse(ask(get_request("/v1/database")).body).at("epoch");
  }
  int hint_status(const EpochId& epoch) const {
    return ask(get_request("/v1/epochs/" + epoch + "/hint")).status;
  }
  double metric(const std::string& name) {
    const std::string text = metrics_.text(*epochs_);
    const size_t at = text.find("\n" + name + " ");
    return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size() + 2));
  }
  double loads(const std::string& result) {
    return metric("blindfuse_epoch_loads_total{result=\"" + result + "\"}");
  }
  void wait_for(const std::function<bool()>& condition) const {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!condition()) {
      ASSERT_LT(std::chrono::steady_clock::now(), give_up);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  void wait_for_epoch(const EpochId& epoch) const {
    wait_for([&] { return current() == epoch; });
    reloader_->wait_until_idle();  // it counts what it served after it serves it
  }

  // A client that knows nothing gets the values of this version.
  void expect_version(int n) const {
    const TemporaryFolder cache;
    ClientOptions options;
    options.cache_folder = cache.path();
    options.thread_count = 1;
    Client client = Client::connect(server_->url(), options);
    EXPECT_EQ(client.get("key 7"), value(7, n));
    EXPECT_EQ(client.get("key 199"), value(199, n));
    EXPECT_EQ(client.get("no key"), std::nullopt);
  }

  std::filesystem::path root() const { return folder_ / "database"; }
  // Of the epoch that the manifest names.
  std::filesystem::path table_file() const {
    const DatabaseDirectory directory(root());
    return directory.tables() /
           DatabaseDirectory::table_name(directory.read_manifest().manifest.table);
  }
  std::filesystem::path hint_file() const {
    const DatabaseDirectory directory(root());
    const auto table =
        parse_shard_table(directory.read_table(directory.read_manifest().manifest), 2);
    return directory.hints() / DatabaseDirectory::hint_name(table[1].hint);
  }
  std::filesystem::path matrix_file() const {
    const DatabaseDirectory directory(root());
    const auto table =
        parse_shard_table(directory.read_table(directory.read_manifest().manifest), 2);
    return directory.shards() / DatabaseDirectory::matrix_name(table[0].matrix);
  }

  const TemporaryFolder folder_;
  ServerMetrics metrics_;
  std::atomic<int> load_count_ = 0;
  std::function<void()> before_load_;  // set before serve()
  std::function<void()> after_step_;   // the same
  std::promise<void> device_lost_;     // says the reloader, once
  ReloaderClock clock_;
  std::unique_ptr<ServedEpochs> epochs_;
  std::unique_ptr<DatabaseServer> server_;
  std::unique_ptr<EpochReloader> reloader_;  // goes first
};

TEST_F(Reloader, ServesANewEpochWhenItAppears) {
  const EpochId first = build(1);
  serve(kOften);
  expect_version(1);
  const EpochId second = build(2);
  wait_for_epoch(second);
  expect_version(2);
  EXPECT_EQ(hint_status(first), 200) << "during its grace";
  EXPECT_EQ(hint_status(second), 200);
  EXPECT_EQ(epochs_->all().size(), 2u);
  EXPECT_EQ(loads("success"), 1);
  EXPECT_EQ(loads("failure"), 0);
}

// A client that has the hints of the epoch before is answered right, then and later.
TEST_F(Reloader, KeepsClientsOfTheEpochBefore) {
  build(1);
  serve(kOften, std::chrono::seconds(2));
  const TemporaryFolder cache;
  ClientOptions options;
  options.cache_folder = cache.path();
  options.thread_count = 1;
  Client client = Client::connect(server_->url(), options);
  EXPECT_EQ(client.get("key 3"), value(3, 1));
  const EpochId second = build(2);
  wait_for_epoch(second);
  const auto during = client.get("key 3");
  EXPECT_TRUE(during == value(3, 1) || during == value(3, 2)) << during.value_or("nothing");
  wait_for([&] { return epochs_->all().size() == 1; });
  EXPECT_EQ(client.get("key 3"), value(3, 2)) << "it was told to look again";
}

TEST_F(Reloader, RetiresAnEpochAfterItsGrace) {
  const EpochId first = build(1);
  serve(kOften, std::chrono::seconds(0));
  const EpochId second = build(2);
  wait_for_epoch(second);
  wait_for([&] { return hint_status(first) == 410; });
  const HttpResponse response = ask(get_request("/v1/epochs/" + first + "/shards"));
  EXPECT_EQ(response.problem(), "retired-epoch");
  EXPECT_EQ(response.epoch(), second);
  EXPECT_EQ(
      ask(post_request("/v1/epochs/" + first + "/queries", "application/octet-stream", "x")).status,
      410);
  wait_for([&] { return epochs_->all().size() == 1; });
  expect_version(2);
}

// Which takes minutes where it is large.
TEST_F(Reloader, RetiresAnEpochWhileItLoadsAnother) {
  const EpochId first = build(1);
  std::vector<size_t> epoch_counts;
  before_load_ = [&] { clock_.jump(std::chrono::seconds(61)); };
  after_step_ = [&] { epoch_counts.push_back(epochs_->all().size()); };
  serve(kNever, std::chrono::seconds(60), clock_.clock());
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
  reloader_->request();
  wait_for_epoch(second);
  expect_version(2);
  const EpochId third = build(3);
  // Without a request.
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  EXPECT_EQ(current(), second);
  reloader_->request();
  wait_for_epoch(third);
  EXPECT_EQ(loads("success"), 2);
}

TEST_F(Reloader, LoadsNothingThatItHas) {
  build(1);
  serve(kWheneverTheClockMoves, std::chrono::hours(1), clock_.clock());
  for (int i = 0; i < 5; ++i) reloader_->request();
  // The same manifest, written again.
  const std::string text = read_whole(root() / "manifest.json");
  std::ofstream(root() / "new") << text;
  std::filesystem::rename(root() / "new", root() / "manifest.json");
  clock_.advance(std::chrono::seconds(1));
  EXPECT_EQ(load_count_, 0);
  EXPECT_EQ(loads("success"), 0);
  EXPECT_EQ(loads("failure"), 0);
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
    const std::string text = read_whole(root() / "manifest.json");
    wait_for([&] { return served().body == text; });
    EXPECT_EQ(parse_manifest(served().body).signature->signer, key.public_key());
    EXPECT_NE(served().header("etag"), tag) << "a cache must not have it for the one before";
  }
  EXPECT_EQ(epochs_->current(), held);
  EXPECT_EQ(load_count_, 0);
  EXPECT_EQ(loads("failure"), 0);
  expect_version(1);
}

TEST_F(Reloader, RefusesAWrongSignature) {
  const SigningKey key = SigningKey::make(fill_from_system);
  build(1, &key);
  serve(kNever);
  const std::string before = ask(get_request("/v1/database")).body;
  const ParsedManifest parsed = parse_manifest(before);
  ManifestSignature wrong = *parsed.signature;
  wrong.sequence += 1;
  std::ofstream(root() / "manifest.json") << serialize_manifest(parsed.manifest, wrong);
  reloader_->request();
  reloader_->wait_until_idle();
  EXPECT_EQ(loads("failure"), 1);
  EXPECT_EQ(ask(get_request("/v1/database")).body, before);
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
  EXPECT_EQ(loads("success"), 0);
  EXPECT_EQ(loads("failure"), 0);
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

TEST_F(Reloader, RefusesABadEpochAndGoesOn) {
  const std::vector<std::pair<const char*, std::function<void()>>> troubles = {
      {"a truncated matrix",
       [&] {
         const auto file = matrix_file();
         std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
       }},
      {"an empty matrix", [&] { std::filesystem::resize_file(matrix_file(), 0); }},
      {"a flipped bit in a hint",
       [&] {
         std::string bytes = read_whole(hint_file());
         bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 4);
         std::ofstream(hint_file(), std::ios::binary) << bytes;
       }},
      {"a missing table", [&] { std::filesystem::remove(table_file()); }},
      {"a missing hint", [&] { std::filesystem::remove(hint_file()); }},
      {"a folder instead of a matrix",
       [&] {
         const auto file = matrix_file();
         std::filesystem::remove(file);
         std::filesystem::create_directory(file);
       }},
      {"a manifest of nonsense", [&] { std::ofstream(root() / "manifest.json") << "nonsense"; }},
      {"an empty manifest", [&] { std::ofstream(root() / "manifest.json") << ""; }},
      {"a manifest cut off",
       [&] {
         const auto file = root() / "manifest.json";
         std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
       }},
      {"a manifest of another id",
       [&] {
         std::string text = read_whole(root() / "manifest.json");
         const size_t at = text.find(nlohmann::json::parse(text).at("epoch").get<std::string>());
         text[at] = text[at] == '0' ? '1' : '0';
         std::ofstream(root() / "manifest.json") << text;
       }},
      {"no manifest", [&] { std::filesystem::remove(root() / "manifest.json"); }},
  };
  int version = 1;
  EpochId served = build(version);
  serve(kNever);
  double failures = 0;
  double successes = 0;
  for (const auto& [name, trouble] : troubles) {
    SCOPED_TRACE(name);
    build(version + 1);
    trouble();
    reloader_->request();
    ++failures;
    reloader_->wait_until_idle();
    EXPECT_EQ(loads("failure"), failures);
    EXPECT_EQ(current(), served);
    EXPECT_LE(epochs_->all().size(), 3u) << "however many there have been";
    expect_version(version);
    // The operator starts from nothing, and all is well.
    std::filesystem::remove_all(root());
    version += 2;
    served = build(version);
    reloader_->request();
    ++successes;
    wait_for_epoch(served);
    EXPECT_EQ(loads("success"), successes);
    EXPECT_EQ(loads("failure"), failures);
    expect_version(version);
  }
}

// Once, not at every look, and not after a while either.
TEST_F(Reloader, TriesABadEpochOnce) {
  const std::vector<std::pair<const char*, std::function<void()>>> troubles = {
      {"a manifest of nonsense",
       [&] {
         std::ofstream(folder_ / "new") << "nonsense";
         std::filesystem::rename(folder_ / "new", root() / "manifest.json");
       }},
      {"a truncated matrix",
       [&] {
         // Not to be seen before it is bad.
         std::filesystem::remove_all(root());
         build(2);
         const auto file = matrix_file();
         std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
       }},
  };
  EpochId served = build(1);
  serve(kWheneverTheClockMoves, std::chrono::hours(1), clock_.clock());
  clock_.advance(std::chrono::seconds(1));
  int version = 2;
  double failures = 0;
  for (const auto& [name, trouble] : troubles) {
    SCOPED_TRACE(name);
    trouble();
    clock_.advance(std::chrono::seconds(1));
    ++failures;
    ASSERT_EQ(loads("failure"), failures);
    for (const std::chrono::seconds pause :
         {std::chrono::seconds(1), std::chrono::seconds(30), std::chrono::seconds(300),
          std::chrono::seconds(90'000)}) {
      clock_.advance(pause);
      EXPECT_EQ(loads("failure"), failures) << "after " << pause.count() << " s";
    }
    EXPECT_EQ(current(), served);
    std::filesystem::remove_all(root());
    served = build(++version);
    clock_.advance(std::chrono::seconds(1));
    EXPECT_EQ(current(), served);
    expect_version(version);
  }
}

// Nothing can go on where it was: what is served is on the same device.
TEST_F(Reloader, SaysThatTheDeviceIsLost) {
  build(1);
  before_load_ = [] { throw DeviceLostError("the test's device is gone"); };
  serve(kNever, std::chrono::hours(1), clock_.clock());
  build(2);
  reloader_->request();
  device_lost_.get_future().wait();
  EXPECT_TRUE(reloader_->stop(std::chrono::minutes(1)));
  EXPECT_EQ(loads("failure"), 1);
  EXPECT_EQ(load_count_, 1) << "it is not tried again";
}

// What the machine lacked may be there later, and no one has to say so.
TEST_F(Reloader, TriesAnEpochAgainThatTheMachineHadNoRoomFor) {
  const std::vector<std::pair<const char*, std::function<void()>>> troubles = {
      {"memory", [] { throw std::bad_alloc(); }},
      {"memory of the engine", [] { throw ResourceError("no room"); }},
      {"descriptors",
       [&] {
         const NoDescriptors none;
         builder_testing::load(root());
       }},
  };
  const std::function<void()>* lacking = nullptr;
  before_load_ = [&] {
    if (lacking != nullptr) (*lacking)();
  };
  int version = 1;
  EpochId served = build(version);
  serve(kWheneverTheClockMoves, std::chrono::hours(1), clock_.clock());
  clock_.advance(std::chrono::seconds(1));
  double failures = 0;
  for (const auto& [name, trouble] : troubles) {
    SCOPED_TRACE(name);
    lacking = &trouble;
    const EpochId next = build(++version);
    clock_.advance(std::chrono::seconds(1));
    ++failures;
    ASSERT_EQ(loads("failure"), failures);
    clock_.advance(std::chrono::seconds(29));
    EXPECT_EQ(loads("failure"), failures) << "too early";
    clock_.advance(std::chrono::seconds(1));
    ++failures;
    EXPECT_EQ(loads("failure"), failures) << "tried again, and failed again";
    EXPECT_EQ(current(), served);
    lacking = nullptr;
    clock_.advance(std::chrono::seconds(30));
    EXPECT_EQ(current(), next);
    EXPECT_EQ(loads("failure"), failures);
    expect_version(version);
    served = next;
  }
}

// However many have downloads that their clients do not take.
TEST_F(Reloader, HasNoMoreEpochsInMemoryThanItMay) {
  constexpr int kEpochs = 20;
  EpochId served = build(1);
  serve(kNever);
  std::vector<std::unique_ptr<LoopbackClient>> readers;
  for (int n = 2; n <= kEpochs; ++n) {
    readers.push_back(std::make_unique<LoopbackClient>(server_->url(), 4'096));
    readers.back()->send(get_request("/v1/epochs/" + served + "/hint"));
    readers.back()->wait_until_readable();
    served = build(n);
    reloader_->request();
    wait_for_epoch(served);
    EXPECT_LE(epochs_->in_memory().size(), 3u);
    EXPECT_LE(metric("blindfuse_epochs"), 3);
  }
  EXPECT_EQ(metric("blindfuse_http_connections_cut_total{why=\"epochs\"}"), kEpochs - 3);
  // The two youngest have all the time that they want.
  for (size_t i = 0; i < readers.size(); ++i) {
    const bool is_young = i + 2 >= readers.size();
    if (is_young) {
      EXPECT_FALSE(readers[i]->receive().body.empty());
    } else {
      EXPECT_TRUE(readers[i]->is_cut_off()) << i;
    }
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
      ClientOptions options;
      options.cache_folder = cache.path();
      options.thread_count = 1;
      Client client = Client::connect(server_->url(), options);
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
  serve(kWheneverTheClockMoves, std::chrono::hours(1), clock_.clock());
  std::vector<std::vector<char>> blocks;
  for (int i = 0; i < 4'000; ++i) blocks.emplace_back(32'768, 'x');
  for (size_t i = 0; i < blocks.size(); i += 2) std::vector<char>().swap(blocks[i]);
  const double before = resident_megabytes();
  clock_.advance(std::chrono::minutes(1));
  EXPECT_LT(resident_megabytes(), before - 50) << "of 64 MB";
}

}  // namespace
}  // namespace blindfuse::server_testing
