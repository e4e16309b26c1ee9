// The power fails while a program writes: what is on the disk then is whole. Each program runs
// once, under a journal of what it does to the disk; from that come hundreds of states in which a
// failure may leave the disk (crashed_disk.h).
#include <blindfuse/client.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <random>

#include "client/cache_folder.h"
#include "client/hint_cache.h"
#include "host/server/serving/api_keys.h"
#include "src/system/open_folder.h"
#include "tests/programs/crashed_disk.h"
#include "tests/programs/program_testing.h"
#include "tests/publish/packed_testing.h"

namespace blindfuse::program_testing {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

class PowerLoss : public ::testing::Test {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "ThreadSanitizer starts no program with a library before it";
#endif
    std::filesystem::create_directory(disk_);
    std::filesystem::create_directory(states_);
    const unsigned seed = std::random_device()();
    std::printf("seed %u\n", seed);
    random_.seed(seed);
  }

  void write_version(int version) const {
    std::string lines;
    for (int i = 0; i < 200; ++i) {
      lines += "k" + std::to_string(i) + "\tversion " + std::to_string(version) + "\n";
    }
    write_file(input_, lines);
  }

  Words build_command(const std::filesystem::path& root, const Words& options) const {
    return Words{kBlindfuse, "build", input_, "--output", root} + options;
  }

  // Runs a program that changes what lies in disk_, and looks at states after a crash: with
  // `is_over`, one after the program's end. Gives what the program said.
  using Check = std::function<void(const std::filesystem::path& disk, bool is_over)>;
  std::string crash(const Words& command, int states, const Check& check) {
    CrashedDisk crashed(disk_);
    const std::string journal = folder_ / "journal";
    std::filesystem::remove(journal);
    const ProgramResult result = run(folder_, with_module(command, "blindfuse-disk-journal",
                                                          {"BLINDFUSE_DISK_JOURNAL=" + journal}));
    EXPECT_EQ(result.status, 0) << result.err;
    crashed.read_journal(journal);
    EXPECT_GT(crashed.record_count(), 1u);
    std::vector<size_t> moments;
    for (int i = 0; i < states; ++i) {
      // One in eight after the last.
      moments.push_back(i % 8 == 0 ? crashed.record_count() : random_() % crashed.record_count());
    }
    std::ranges::sort(moments);
    for (const size_t moment : moments) {
      crashed.advance(moment);
      const auto entries =
          random_() % 2 == 0 ? CrashedDisk::Entries::kAny : CrashedDisk::Entries::kFirstOnes;
      const std::filesystem::path state = states_ / std::to_string(++state_count_);
      crashed.write_state(entries, random_, state);
      SCOPED_TRACE("after " + std::to_string(moment) + " of " +
                   std::to_string(crashed.record_count()) + " records");
      check(state, moment == crashed.record_count());
      std::filesystem::remove_all(state);
      if (HasFailure()) break;
    }
    return result.out;
  }

  // The epoch in a folder; nothing when there is none.
  static std::optional<LoadedDatabase> find_epoch(const std::filesystem::path& root) {
    if (!std::filesystem::exists(root / "manifest.json")) return std::nullopt;
    try {
      return load(root);
    } catch (const std::exception& error) {
      ADD_FAILURE() << "an epoch that is not whole: " << error.what();
      return std::nullopt;
    }
  }

  // A journal names its directory, of which a state is a copy: it gets the name of the copy.
  void adopt_journal(const std::filesystem::path& root) const {
    const std::filesystem::path journal = root / ".build-journal";
    if (!std::filesystem::exists(journal)) return;
    std::string text = read_whole(journal);
    const std::string old_name = OpenFolder(disk_ / "db").identity();
    if (const size_t at = text.find(old_name); at != std::string::npos) {
      write_file(journal, text.replace(at, old_name.size(), OpenFolder(root).identity()));
    }
  }

  // The next build is right, or names what is in its way: the journal's last lines may be lost, and
  // what they named is then left alone. An epoch that was there stays.
  void expect_another_build(const std::filesystem::path& root, const Words& options,
                            const std::string& value) {
    adopt_journal(root);
    const auto before = find_epoch(root);
    const ProgramResult again = run(folder_, build_command(root, options));
    const auto after = find_epoch(root);
    if (again.status == 0) {
      ASSERT_TRUE(after);
      EXPECT_EQ(look_up(*after, "k17"), value);
      ++rebuilt_count_;
    } else {
      EXPECT_THAT(again.err, AnyOf(HasSubstr("move it away"),
                                   HasSubstr("choose a new or an empty directory")));
      EXPECT_EQ(before ? before->epoch : "", after ? after->epoch : "");
    }
  }

  // A first build, and one over its epoch. After this many states comes another build.
  void crash_builds(const Words& options, int states, int every) {
    write_version(1);
    const auto command = build_command(disk_ / "db", options);
    int published = 0;
    crash(command, states, [&](const std::filesystem::path& disk, bool is_over) {
      const auto epoch = find_epoch(disk / "db");
      published += epoch ? 1 : 0;
      if (is_over) {
        EXPECT_TRUE(epoch) << "a build that had ended well";
      }
      if (epoch) {
        EXPECT_EQ(look_up(*epoch, "k17"), "version 1");
      }
      if (state_count_ % every == 0) {
        expect_another_build(disk / "db", options, "version 1");
      }
    });
    EXPECT_GT(published, 0);
    const std::string first = load(disk_ / "db").epoch;
    write_version(2);
    int old = 0;
    crash(command, states, [&](const std::filesystem::path& disk, bool is_over) {
      const auto epoch = find_epoch(disk / "db");
      ASSERT_TRUE(epoch) << "there always is an epoch";
      const bool is_old = epoch->epoch == first;
      old += is_old ? 1 : 0;
      EXPECT_FALSE(is_over && is_old) << "a build that had ended well";
      EXPECT_EQ(look_up(*epoch, "k17"), is_old ? "version 1" : "version 2");
      if (!is_old) {
        EXPECT_EQ(epoch->retired, std::vector<EpochId>{first}) << "clients of it are told";
      }
      if (state_count_ % every == 0) {
        expect_another_build(disk / "db", options, "version 2");
      }
    });
    EXPECT_GT(old, 0);
    EXPECT_GT(rebuilt_count_, 0);
  }

  const TemporaryFolder folder_;
  const std::filesystem::path disk_ = folder_ / "disk";
  const std::filesystem::path states_ = folder_ / "states";
  const std::filesystem::path input_ = folder_ / "a.tsv";
  std::mt19937 random_;
  int state_count_ = 0;
  int rebuilt_count_ = 0;
};

TEST_F(PowerLoss, LeavesAWholeEpoch) {
  crash_builds({"--mode", "hint", "--params", "lwe-1288", "--shards", "3"}, 250, 25);
}

// Each state has 50 MB, so there are fewer.
TEST_F(PowerLoss, LeavesAWholePackedEpoch) {
  crash_builds({"--mode", "packed", "--shards", "3"}, 16, 4);
}

TEST_F(PowerLoss, LeavesACacheThatAnswersRight) {
  const std::filesystem::path database = folder_ / "db";
  const Words options = {"--mode", "hint", "--params", "lwe-1288", "--shards", "3"};
  write_version(1);
  ASSERT_EQ(run(folder_, build_command(database, options)).status, 0);
  RunningServer server(folder_, database, "127.0.0.1:0",
                       {"--grace-seconds", "0", "--watch-seconds", "0"});
  const Words sync = {kBlindfuseClient, "sync", server.url(), "--cache", disk_ / "cache"};
  const auto connect = [&](const std::filesystem::path& disk) {
    ClientOptions client;
    client.cache_folder = disk / "cache";
    client.thread_count = 1;
    return Client::connect(server.url(), client);
  };
  const auto check = [&](const std::string& value) {
    return [&, value](const std::filesystem::path& disk, bool is_over) {
      Client client = connect(disk);
      if (is_over) {
        EXPECT_EQ(client.sync().bytes_fetched, 0u) << "what had been fetched";
      }
      EXPECT_EQ(client.get("k17"), value);
      EXPECT_EQ(client.get("k200"), std::nullopt);
    };
  };
  crash(sync, 150, [&](const std::filesystem::path& disk, bool is_over) {
    // A manifest says that everything it names is there: without one, no key was asked for.
    const auto cache = database_folder(disk / "cache", server.url());
    if (std::filesystem::exists(cache / "manifest.json")) {
      EXPECT_TRUE(HintCache(cache).stored());
    }
    check("version 1")(disk, is_over);
  });
  write_version(2);
  ASSERT_EQ(run(folder_, build_command(database, options)).status, 0);
  const std::string next = load(database).epoch;
  server.program().send(SIGHUP);
  while (connect(folder_.path()).sync().epoch != next) {
    std::this_thread::yield();
  }
  crash(sync, 250, check("version 2"));
}

TEST_F(PowerLoss, LosesNoApiKeyThatWasPrinted) {
  const std::string file = disk_ / "keys";
  Words keys;
  for (int i = 0; i < 3; ++i) {
    const Words command = {kBlindfuse, "api-key", "name" + std::to_string(i), "--file", file};
    const std::string out = crash(command, 120, [&](const auto& disk, bool is_over) {
      // Until there is a key, a file may be there that has none.
      const auto exists = std::filesystem::exists(disk / "keys");
      if (!is_over && (!exists || std::filesystem::file_size(disk / "keys") == 0)) {
        EXPECT_TRUE(keys.empty());
        return;
      }
      const ApiKeys found(disk / "keys");
      for (const std::string& known : keys) EXPECT_TRUE(found.find("Bearer " + known));
      if (is_over) {
        EXPECT_EQ(found.count(), keys.size() + 1) << "the key that was printed";
      }
    });
    keys.push_back(out.substr(0, out.find('\n')));
    EXPECT_TRUE(ApiKeys(file).find("Bearer " + keys.back()));
  }
}

}  // namespace
}  // namespace blindfuse::program_testing
