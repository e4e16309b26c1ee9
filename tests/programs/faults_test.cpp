// What may go wrong around the real programs: they are killed, their files are damaged, their disk
// is full.
#include <blindfuse/client.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <future>
#include <random>

#include "host/database/directory.h"
#include "host/server/serving/api_keys.h"
#include "tests/programs/program_testing.h"
#include "tests/server/loopback_client.h"

namespace blindfuse::program_testing {
namespace {

using server_testing::get_request;
using server_testing::LoopbackClient;
using server_testing::post_head;

class Faults : public ::testing::Test {
 protected:
  static std::string lines_of(int version) {
    std::string lines;
    for (int i = 0; i < 500; ++i) {
      lines += "key " + std::to_string(i) + "\t" + value(i, version) + "\n";
    }
    return lines;
  }
  static std::string value(int i, int version) {
    return "value " + std::to_string(i) + " of " + std::to_string(version + 1000);
  }
  // Version `n` as the database's next epoch.
  void build(int n) const {
    write_file(folder_ / "input.tsv", lines_of(n));
    const ProgramResult result =
        run(folder_, {kBlindfuse, "build", folder_ / "input.tsv", "--output", database_, "--shards",
                      "4", "--params", "lwe-1288"});
    ASSERT_EQ(result.status, 0) << result.err;
  }

  static Client connect(const std::string& url, const TemporaryFolder& cache) {
    ClientOptions options;
    options.cache_folder = cache.path();
    options.thread_count = 1;
    return Client::connect(url, options);
  }
  static void expect_version(const std::string& url, int n) {
    const TemporaryFolder cache;
    Client client = connect(url, cache);
    EXPECT_EQ(client.get("key 3"), value(3, n));
    EXPECT_EQ(client.get("key 499"), value(499, n));
    EXPECT_EQ(client.get("no key"), std::nullopt);
  }
  static double failures(const RunningServer& server) {
    const std::string text = LoopbackClient(server.admin_url()).ask(get_request("/metrics")).body;
    const std::string name = "blindfuse_epoch_loads_total{result=\"failure\"} ";
    return std::stod(text.substr(text.find(name) + name.size()));
  }
  // A server that has been told to stop may let go of an idle client before it closes its listening
  // socket. Whoever connects in between is let go of after that.
  static void expect_nobody_can_connect(const std::string& url) {
    try {
      (void)LoopbackClient(url).is_closed();  // waits for it
    } catch (const std::runtime_error&) {
      return;
    }
    EXPECT_THROW(LoopbackClient{url}, std::runtime_error);
  }
  template <typename Condition>
  static void wait_for(Condition condition) {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!condition()) {
      ASSERT_LT(std::chrono::steady_clock::now(), give_up);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }

  const TemporaryFolder folder_;
  const std::string database_ = folder_ / "words.blindfuse";
};

TEST_F(Faults, AServerThatIsKilledServesAgain) {
  constexpr unsigned kSeed = 20'261'121;
  std::printf("seed %u\n", kSeed);
  std::mt19937 random(kSeed);
  build(1);
  for (int round = 0; round < 8; ++round) {
    RunningServer server(folder_, database_);
    ASSERT_NE(server.url(), "") << server.program().err();
    std::atomic<int> answered = 0;
    std::vector<std::future<void>> clients;
    for (int c = 0; c < 3; ++c) {
      clients.push_back(std::async(std::launch::async, [&, c] {
        const TemporaryFolder cache;
        try {
          Client client = connect(server.url(), cache);
          for (int i = c;; i = (i + 7) % 500) {
            EXPECT_EQ(client.get("key " + std::to_string(i)), value(i, 1));
            ++answered;
          }
        } catch (const std::exception&) {
          // The server is gone.
        }
      }));
    }
    // Half of the rounds end while clients connect, however slow the machine, the others amid
    // look-ups.
    if (round % 2 == 1) wait_for([&] { return answered > 0; });
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 400));
    server.program().send(SIGKILL);
    EXPECT_EQ(server.program().wait(), -SIGKILL);
    for (auto& client : clients) client.get();
  }
  RunningServer server(folder_, database_);
  expect_version(server.url(), 1);
  EXPECT_EQ(server.stop(), 0);
}

TEST_F(Faults, DamagedFilesAreRefusedWhileTheServerGoesOn) {
  build(1);
  // It looks when it is told to, not before the damage is done.
  RunningServer server(folder_, database_, "127.0.0.1:0", {"--watch-seconds", "0"});
  ASSERT_NE(server.url(), "") << server.program().err();
  expect_version(server.url(), 1);
  const DatabaseDirectory directory(database_);
  const auto table = [&] {
    const Manifest manifest = directory.read_manifest().manifest;
    return parse_shard_table(directory.read_table(manifest), manifest.layout.shard_count);
  };
  const auto hint = [&] {
    return directory.hints() / DatabaseDirectory::hint_name(table()[1].hint);
  };
  const auto matrix = [&] {
    return directory.shards() / DatabaseDirectory::matrix_name(table()[2].matrix);
  };
  const auto flip = [](const std::filesystem::path& path) {
    std::string bytes = read_whole(path);
    bytes[bytes.size() / 3] = static_cast<char>(bytes[bytes.size() / 3] ^ 1);
    write_file(path, bytes);
  };
  // While they are those of the epoch that is served: it has them in memory.
  const std::filesystem::path served_hint = hint();
  const std::filesystem::path served_matrix = matrix();
  flip(served_hint);
  std::filesystem::resize_file(served_matrix, 10);
  expect_version(server.url(), 1);

  const std::vector<std::pair<const char*, std::function<void()>>> troubles = {
      {"truncated matrix", [&] { std::filesystem::resize_file(matrix(), 10); }},
      {"flipped hint", [&] { flip(hint()); }},
      {"replaced manifest", [&] { write_file(directory.manifest_file(), "{}"); }},
  };
  double expected = 0;
  for (const auto& [name, trouble] : troubles) {
    SCOPED_TRACE(name);
    std::filesystem::remove_all(database_);
    build(2);
    trouble();
    server.program().send(SIGHUP);
    ++expected;
    wait_for([&] { return failures(server) == expected; });
    expect_version(server.url(), 1);
  }
  std::filesystem::remove_all(database_);
  build(3);
  server.program().send(SIGHUP);
  wait_for([&] {
    return LoopbackClient(server.url()).ask(get_request("/v1/database")).body ==
           read_whole(directory.manifest_file());
  });
  expect_version(server.url(), 3);
  EXPECT_EQ(server.stop(), 0);
}

TEST_F(Faults, TermFinishesWhatHasBegunAndASecondOneEnds) {
  build(1);
  for (const bool twice : {false, true}) {
    RunningServer server(folder_, database_);
    ASSERT_NE(server.url(), "") << server.program().err();
    LoopbackClient idle(server.url());
    const std::string epoch =
        nlohmann::json::parse(idle.ask(get_request("/v1/database")).body).at("epoch");
    LoopbackClient slow(server.url());
    slow.send(post_head("/v1/epochs/" + epoch + "/queries", "application/json", "14"));
    slow.send("{\"queries\":");
    EXPECT_EQ(idle.ask(get_request("/health/live")).status, 200);
    server.program().send(SIGTERM);
    EXPECT_TRUE(idle.is_closed());
    expect_nobody_can_connect(server.url());
    if (twice) {
      server.program().send(SIGTERM);
      EXPECT_EQ(server.program().wait(), 1);
      EXPECT_THROW(slow.receive(), std::runtime_error);
    } else {
      slow.send("[]}");
      EXPECT_EQ(slow.receive().problem(), "malformed-queries");
      EXPECT_EQ(server.program().wait(), 0);
    }
  }
}

// What file systems over a network may lack: durable folders, and locks. A failing disk is another
// matter.
TEST_F(Faults, AFileSystemMayLackWhatItDoesNotHave) {
  write_file(folder_ / "input.tsv", lines_of(1));
  const auto with = [&](int error, const Words& command) {
    return run(folder_, with_module(command, "blindfuse-network-folder",
                                    {"BLINDFUSE_FAILING_CALLS=" +
                                         std::string(error == EIO ? "fsync" : "fsync syncfs flock"),
                                     "BLINDFUSE_FAILING_WITH=" + std::to_string(error)}));
  };
  for (const int error : {EINVAL, ENOTSUP, ENOSYS, ENOLCK, EIO}) {
    SCOPED_TRACE(strerror(error));
    const int status = error == EIO ? 1 : 0;
    const std::string keys = folder_ / "keys.txt", signing = folder_ / "sign.key";
    std::filesystem::remove_all(database_);
    std::filesystem::remove(keys);
    std::filesystem::remove(signing);
    const ProgramResult built = with(error, {kBlindfuse, "build", folder_ / "input.tsv", "--output",
                                             database_, "--params", "lwe-1288"});
    EXPECT_EQ(built.status, status) << built.err;
    EXPECT_EQ(built.err.find("has no locks") != std::string::npos, error != EIO) << built.err;
    const ProgramResult key = with(error, {kBlindfuse, "api-key", "alice", "--file", keys});
    EXPECT_EQ(key.status, status) << key.err;
    EXPECT_EQ(key.out.empty(), error == EIO);
    EXPECT_EQ(with(error, {kBlindfuse, "keygen", signing}).status, status);
    EXPECT_EQ(std::filesystem::exists(signing), error != EIO);
    if (error == EIO) build(1);
    RunningServer server(folder_, database_);
    const TemporaryFolder cache;
    const ProgramResult got =
        with(error, {kBlindfuseClient, "get", server.url(), "key 3", "--cache", cache.path()});
    EXPECT_EQ(got.status, status) << got.err;
    EXPECT_EQ(got.out, error == EIO ? "" : value(3, 1) + "\n");
    EXPECT_EQ(server.stop(), 0);
  }
}

// A read that never returns, as of a file system over a network that has lost its server: clients
// are answered, signals are heard, and the server ends.
TEST_F(Faults, AFileSystemThatHangsHoldsUpNobody) {
  build(1);
  const std::string keys = folder_ / "keys.txt", hang = folder_ / "hang";
  write_file(keys, api_key_line("alice", "key") + "\n");
  std::vector<std::unique_ptr<RunningServer>> servers;
  for (const char* file : {"keys.txt", "manifest.json"}) {
    SCOPED_TRACE(file);
    auto& server = *servers.emplace_back(std::make_unique<RunningServer>(
        folder_, database_, "127.0.0.1:0", Words{"--api-keys", keys, "--watch-seconds", "0"},
        [&](const auto& command) {
          return with_module(
              command, "blindfuse-hang-at-open",
              {std::string("BLINDFUSE_HANG_AT=") + file, "BLINDFUSE_HANG_IF=" + hang});
        }));
    ASSERT_NE(server.url(), "") << server.program().err();
    write_file(hang, "");
    server.program().send(SIGHUP);
    wait_for([&] { return !std::filesystem::exists(hang); });
    server.program().send(SIGHUP);
    LoopbackClient client(server.url());
    EXPECT_EQ(client.ask(get_request("/v1/database", "Authorization: Bearer key\r\n")).status, 200);
    server.program().send(SIGTERM);
  }
  for (const auto& server : servers) {
    EXPECT_EQ(server->program().wait(), 0);
    const std::string err = server->program().err();
    EXPECT_NE(err.find("a file system does not answer"), std::string::npos) << err;
    EXPECT_FALSE(std::filesystem::exists(server->ready_file()));
  }
}

}  // namespace
}  // namespace blindfuse::program_testing
