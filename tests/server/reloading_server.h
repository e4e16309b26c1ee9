// A server of a real directory, whose epochs a reloader replaces.
#pragma once

#include <blindfuse/client.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "host/database/directory.h"
#include "host/server/service.h"
#include "host/server/serving/epoch_reloader.h"
#include "tests/publish/builder_testing.h"
#include "tests/server/loopback_client.h"

namespace blindfuse::server_testing {

using builder_testing::read_whole;
using builder_testing::TemporaryFolder;

inline constexpr auto kNever = std::chrono::milliseconds(0);
inline constexpr auto kOften = std::chrono::milliseconds(20);

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

class Reloader : public ::testing::Test {
 protected:
  // Version `n` of the pairs, as the directory's next epoch.
  EpochId build(int n, const SigningKey* key = nullptr) const {
    builder_testing::Pairs pairs;
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

  // Looks whenever the test's clock moves.
  void serve_by_hand() {
    by_hand_ = true;
    serve(std::chrono::milliseconds(1));
    clock_.advance(std::chrono::seconds(1));
  }
  void serve(std::chrono::milliseconds watch, std::chrono::seconds grace = std::chrono::hours(1)) {
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
                      .clock = by_hand_ ? clock_.clock() : std::chrono::steady_clock::now});
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

  Client connect(const TemporaryFolder& cache) const {
    ClientOptions options;
    options.cache_folder = cache.path();
    options.thread_count = 1;
    return Client::connect(server_->url(), options);
  }
  // A client that knows nothing gets the values of this version.
  void expect_version(int n) const {
    const TemporaryFolder cache;
    Client client = connect(cache);
    EXPECT_EQ(client.get("key 7"), value(7, n));
    EXPECT_EQ(client.get("no key"), std::nullopt);
  }
  void expect_loads(double successes, double failures) {
    EXPECT_EQ(loads("success"), successes);
    EXPECT_EQ(loads("failure"), failures);
  }
  void request_and_wait() {
    reloader_->request();
    reloader_->wait_until_idle();
  }

  std::filesystem::path root() const { return folder_ / "database"; }
  std::filesystem::path manifest_file() const { return root() / "manifest.json"; }
  void write_manifest(const std::string& text) const { std::ofstream(manifest_file()) << text; }
  // The files of the epoch that the manifest names.
  std::filesystem::path table_file() const {
    const DatabaseDirectory directory(root());
    return directory.tables() /
           DatabaseDirectory::table_name(directory.read_manifest().manifest.table);
  }
  std::filesystem::path hint_file() const {
    return DatabaseDirectory(root()).hints() / DatabaseDirectory::hint_name(shards()[1].hint);
  }
  std::filesystem::path matrix_file() const {
    return DatabaseDirectory(root()).shards() / DatabaseDirectory::matrix_name(shards()[0].matrix);
  }
  void cut_matrix() const {
    const auto file = matrix_file();
    std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
  }

  std::vector<ShardEntry> shards() const {
    const DatabaseDirectory directory(root());
    return parse_shard_table(directory.read_table(directory.read_manifest().manifest), 2);
  }

  const TemporaryFolder folder_;
  ServerMetrics metrics_;
  std::atomic<int> load_count_ = 0;
  std::function<void()> before_load_;  // set before serve()
  std::function<void()> after_step_;   // the same
  std::promise<void> device_lost_;     // says the reloader, once
  bool by_hand_ = false;               // the reloader has clock_; before serve()
  ReloaderClock clock_;
  std::unique_ptr<ServedEpochs> epochs_;
  std::unique_ptr<DatabaseServer> server_;
  std::unique_ptr<EpochReloader> reloader_;  // goes first
};

}  // namespace blindfuse::server_testing
