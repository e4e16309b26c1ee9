#include "client/hint_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/statvfs.h>

#include <fstream>
#include <optional>
#include <set>
#include <thread>

#include "src/protocol/sha256.h"
#include "tests/client/client_testing.h"
#include "tests/client/fake_server.h"

namespace blindfuse {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr uint32_t kCachedShards = 9;

class HintCacheTest : public testing::Test {
 protected:
  ScratchFolder scratch_;
  const std::filesystem::path folder_ = scratch_.path() / "database";
  FakeServer server_{ServedDatabase::with_noise(kCachedShards, 2, 0)};
  RemoteDatabase remote_{std::make_unique<FakeTransport>(server_), "http://test"};
  const uint64_t hint_bytes_ = server_.database.layout().hint_part_bytes();

  SyncResult sync(HintCache& cache, bool verify = false, const ProgressCallback& progress = {}) {
    SyncResult result;
    cache.sync(remote_, server_.database.manifest_text(), verify, progress, result);
    return result;
  }

  DatabaseDescription description() const {
    return DatabaseDescription(server_.database.manifest_text(), server_.database.table());
  }

  std::filesystem::path hint_path(uint32_t shard) const {
    return folder_ / "hints" / hint_file_name(description().table()[shard].hint);
  }

  void expect_all_hints(const HintCache& cache) const {
    const DatabaseDescription database = description();
    for (uint32_t shard = 0; shard < kCachedShards; ++shard) {
      EXPECT_EQ(cache.read_hint(database, shard), server_.database.hints()[shard]);
    }
  }

  std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "hints")) {
      names.insert(entry.path().filename().string());
    }
    return names;
  }

  // Stops a download that has come so far.
  static ProgressCallback until(uint64_t bytes) {
    return [bytes](const ClientProgress& progress) { return progress.done < bytes; };
  }

  static void alter(const std::filesystem::path& path) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(100);
    const char byte = static_cast<char>(file.get() ^ 1);
    file.seekp(100);
    file.put(byte);
  }
};

TEST_F(HintCacheTest, FetchesAllHintsOnce) {
  HintCache cache(folder_);
  EXPECT_FALSE(cache.stored());
  const SyncResult first = sync(cache);
  EXPECT_EQ(first.epoch, server_.database.epoch());
  EXPECT_EQ(first.shard_count, kCachedShards);
  EXPECT_EQ(first.shards_fetched, kCachedShards);
  EXPECT_EQ(first.bytes_fetched, kCachedShards * hint_bytes_ + kCachedShards * kShardEntryBytes);
  EXPECT_EQ(first.hint_bytes, kCachedShards * hint_bytes_);
  expect_all_hints(cache);
  ASSERT_EQ(server_.count("/hint?"), 1u);
  EXPECT_TRUE(server_.requests.back().path.ends_with("shards=0-8"));

  server_.requests.clear();
  const SyncResult second = sync(cache);
  EXPECT_EQ(second.shards_fetched, 0u);
  EXPECT_EQ(second.bytes_fetched, 0u);
  EXPECT_TRUE(server_.requests.empty());
  const HintCache reopened(folder_);
  ASSERT_TRUE(reopened.stored());
  EXPECT_EQ(reopened.stored()->epoch(), server_.database.epoch());
}

TEST_F(HintCacheTest, FetchesOnlyChangedShardsAndRemovesTheOld) {
  HintCache cache(folder_);
  sync(cache);
  const std::set<std::string> before = files();
  server_.database =
      server_.database.with_other_noise(2, 1).with_other_noise(3, 1).with_other_noise(7, 1);
  server_.requests.clear();
  const SyncResult result = sync(cache);
  EXPECT_EQ(result.shards_fetched, 3u);
  ASSERT_EQ(server_.count("/hint?"), 1u);
  EXPECT_TRUE(server_.requests.back().path.ends_with("shards=2-3,7"));
  expect_all_hints(cache);
  EXPECT_EQ(files().size(), kCachedShards);
  EXPECT_NE(files(), before);
}

TEST_F(HintCacheTest, ShardsWithOneContentShareOneHint) {
  server_.database = server_.database.with_same_hint(6, 1).with_same_hint(8, 1);
  HintCache cache(folder_);
  EXPECT_EQ(sync(cache).shards_fetched, kCachedShards - 2);
  EXPECT_TRUE(server_.requests.back().path.ends_with("shards=0-5,7"));
  EXPECT_EQ(files().size(), kCachedShards - 2);
  expect_all_hints(cache);
}

TEST_F(HintCacheTest, AnInterruptedDownloadIsResumedByTheNextProcess) {
  for (const bool ignore_ranges : {false, true}) {
    SCOPED_TRACE(ignore_ranges);
    server_.ignore_ranges = ignore_ranges;
    std::filesystem::remove_all(folder_);
    {
      HintCache cache(folder_);
      EXPECT_THROW(sync(cache, false, until(4 * hint_bytes_ + 2000)), CancelledError);
      EXPECT_FALSE(cache.stored());
    }
    server_.requests.clear();
    HintCache cache(folder_);
    sync(cache);
    const SeenRequest again = server_.seen("/hint?").at(0);
    EXPECT_TRUE(again.path.ends_with("shards=4-8")) << again.path;
    EXPECT_GE(again.first_byte, 2000u);
    EXPECT_LT(again.first_byte, hint_bytes_);
    expect_all_hints(cache);
    EXPECT_EQ(files().size(), kCachedShards);
  }
}

// After a loss of power a file may have its name and its size, and zeros for its content. The bytes
// of a complete epoch are not read at every sync.
TEST_F(HintCacheTest, AHintOfAnInterruptedDownloadThatLostItsContentIsFetchedAgain) {
  HintCache cache(folder_);
  for (const bool is_first : {true, false}) {
    SCOPED_TRACE(is_first);
    server_.database = server_.database.with_other_noise(2, is_first ? 1 : 2)
                           .with_other_noise(3, is_first ? 1 : 2);
    const auto stop = [&](const ClientProgress& progress) {
      return progress.done < progress.total - 10;
    };
    server_.piece_bytes = hint_bytes_;
    EXPECT_THROW(sync(cache, false, stop), CancelledError);
    std::ofstream(hint_path(2), std::ios::binary) << std::string(hint_bytes_, '\0');
    server_.requests.clear();
    sync(cache);
    ASSERT_EQ(server_.count("/hint?"), 1u);
    EXPECT_TRUE(server_.requests.back().path.find("shards=2") != std::string::npos)
        << server_.requests.back().path;
    expect_all_hints(cache);
  }
}

TEST_F(HintCacheTest, DownloadsThatWereNotCompletedDoNotAddUp) {
  HintCache cache(folder_);
  sync(cache);
  const std::set<std::string> complete = files();
  std::set<std::string> last;
  for (uint8_t epoch = 1; epoch <= 5; ++epoch) {
    server_.database = ServedDatabase::with_noise(kCachedShards, 2, epoch);
    EXPECT_THROW(sync(cache, false, until(3 * hint_bytes_ + 2000)), CancelledError);
    last = files();
    EXPECT_EQ(last.size(), kCachedShards + 3 + 1) << "three hints and the beginning of a fourth";
  }
  EXPECT_TRUE(std::includes(last.begin(), last.end(), complete.begin(), complete.end()));
  sync(cache);
  EXPECT_TRUE(server_.requests.back().path.ends_with("shards=3-8")) << "it was resumed";
  expect_all_hints(cache);
  EXPECT_EQ(files().size(), kCachedShards);
}

TEST_F(HintCacheTest, WhatIsUsedOutlivesAnotherClientsDownload) {
  HintCache cache(folder_);
  sync(cache);
  const DatabaseDescription used = description();
  cache.use(used);
  const Bytes hint = server_.database.hints()[0];
  server_.database = ServedDatabase::with_noise(kCachedShards, 2, 1);
  {
    HintCache another(folder_);
    sync(another);
  }
  server_.database = ServedDatabase::with_noise(kCachedShards, 2, 2);
  EXPECT_THROW(sync(cache, false, until(1)), CancelledError);
  EXPECT_EQ(cache.read_hint(used, 0), hint);
}

TEST_F(HintCacheTest, AnAlteredBeginningIsFetchedAgain) {
  HintCache cache(folder_);
  EXPECT_THROW(sync(cache, false, until(2000)), CancelledError);
  alter(folder_ / "hints" / *files().begin());
  sync(cache);
  expect_all_hints(cache);
}

// The beginning of shard 5, which comes after others that are missing; and all of shard 0.
TEST_F(HintCacheTest, BytesOfAnEarlierDownloadDoNotSpoilARequest) {
  HintCache cache(folder_);
  for (const auto& [shard, bytes, first_byte] :
       {std::tuple(5u, uint64_t{500}, uint64_t{0}), std::tuple(0u, hint_bytes_, hint_bytes_)}) {
    server_.requests.clear();
    server_.database = ServedDatabase::with_noise(kCachedShards, 2, static_cast<uint8_t>(shard));
    const Bytes& hint = server_.database.hints()[shard];
    std::ofstream(folder_ / "hints" / partial_file_name(description().table()[shard].hint),
                  std::ios::binary)
        .write(reinterpret_cast<const char*>(hint.data()), static_cast<long>(bytes));
    sync(cache);
    ASSERT_EQ(server_.count("/hint?"), 1u);
    EXPECT_EQ(server_.seen("/hint?")[0].first_byte, first_byte);
    expect_all_hints(cache);
  }
}

TEST_F(HintCacheTest, AHintThatIsNotTheTablesIsRefused) {
  HintCache cache(folder_);
  server_.alter_body = [&](Bytes& body) {
    if (body.size() > 2 * hint_bytes_) body[hint_bytes_ + 5] ^= 1;
  };
  EXPECT_THROW(sync(cache), ProtocolError);
  EXPECT_FALSE(cache.stored());
  server_.alter_body = nullptr;
  sync(cache);
  expect_all_hints(cache);
}

TEST_F(HintCacheTest, ATableThatIsNotTheManifestsIsRefused) {
  HintCache cache(folder_);
  server_.alter_body = [&](Bytes& body) { body[0] ^= 1; };
  EXPECT_THROW(sync(cache), ProtocolError);
}

TEST_F(HintCacheTest, AnAlteredHintFailsWithoutBeingAskedFor) {
  HintCache cache(folder_);
  sync(cache);
  server_.requests.clear();
  alter(hint_path(4));
  std::filesystem::remove(hint_path(6));
  std::filesystem::resize_file(hint_path(7), 10);
  for (const uint32_t shard : {4u, 6u, 7u}) {
    EXPECT_THAT(message_of<CacheError>([&] { cache.read_hint(description(), shard); }),
                HasSubstr("sync --verify"));
  }
  EXPECT_TRUE(server_.requests.empty());
}

TEST_F(HintCacheTest, ADamagedEpochIsFetchedWholeAndNeverASingleHint) {
  HintCache cache(folder_);
  sync(cache);
  const auto expect_all_fetched = [&](bool verify) {
    server_.requests.clear();
    EXPECT_EQ(sync(cache, verify).shards_fetched, kCachedShards);
    ASSERT_EQ(server_.count("/hint?"), 1u);
    EXPECT_TRUE(server_.requests.back().path.ends_with("shards=0-8"));
    expect_all_hints(cache);
    EXPECT_TRUE(cache.stored());
  };
  std::filesystem::remove(hint_path(6));
  EXPECT_FALSE(cache.stored());
  expect_all_fetched(false);
  std::filesystem::resize_file(hint_path(7), 10);
  EXPECT_FALSE(cache.stored());
  expect_all_fetched(false);
  // A plain sync sees sizes, a verifying one everything.
  alter(hint_path(4));
  EXPECT_EQ(sync(cache).shards_fetched, 0u);
  EXPECT_THROW(cache.read_hint(description(), 4), CacheError);
  expect_all_fetched(true);
  EXPECT_EQ(sync(cache, true).shards_fetched, 0u);
  // What says which epoch was complete is altered too.
  std::filesystem::remove(hint_path(2));
  alter(folder_ / "manifest.json");
  expect_all_fetched(false);
}

TEST_F(HintCacheTest, ADamagedEpochIsFetchedWholeWhenTheServerHasAnother) {
  HintCache cache(folder_);
  sync(cache);
  for (const bool verify : {false, true}) {
    // The damaged shard is not one of those that changed.
    if (verify) {
      alter(hint_path(6));
    } else {
      std::filesystem::remove(hint_path(6));
    }
    server_.database = server_.database.with_other_noise(2, verify ? 1 : 2);
    EXPECT_EQ(sync(cache, verify).shards_fetched, kCachedShards);
    expect_all_hints(cache);
  }
}

TEST_F(HintCacheTest, ADamagedEpochIsFetchedWholeEvenWhenThatIsInterrupted) {
  HintCache cache(folder_);
  sync(cache);
  std::filesystem::remove(hint_path(6));
  EXPECT_THROW(sync(cache, false, until(3 * hint_bytes_)), CancelledError);
  server_.requests.clear();
  sync(cache);
  EXPECT_TRUE(server_.seen("/hint?").at(0).path.ends_with("shards=3-8"));
  expect_all_hints(cache);
}

TEST_F(HintCacheTest, AHintWithUnusedBitsSetRefusesTheWholeSync) {
  // 1774 words of 17 bits leave 2 bits; the hashes are right.
  server_.database = ServedDatabase::with_noise(kCachedShards, 1, 0, "lwe-1774", 17);
  HintCache cache(folder_);
  EXPECT_THROW(sync(cache), ProtocolError);
  EXPECT_FALSE(cache.stored());
}

TEST_F(HintCacheTest, AlteredManifestsAndTablesAreFetchedAgain) {
  HintCache cache(folder_);
  sync(cache);
  alter(folder_ / "shards.table");
  EXPECT_FALSE(cache.stored());
  EXPECT_EQ(sync(cache).bytes_fetched, kCachedShards * kShardEntryBytes);
  EXPECT_TRUE(cache.stored());
  alter(folder_ / "manifest.json");
  EXPECT_FALSE(cache.stored());
  EXPECT_EQ(sync(cache).bytes_fetched, 0u);
  EXPECT_TRUE(cache.stored());
}

TEST_F(HintCacheTest, HintsThatAnotherClientReadsStay) {
  HintCache cache(folder_);
  sync(cache);
  const DatabaseDescription old = description();
  const ServedDatabase old_served = server_.database;
  auto reader = std::make_unique<HintCache>(folder_);
  server_.database = server_.database.with_other_noise(2, 1);
  sync(cache);
  EXPECT_EQ(reader->read_hint(old, 2), old_served.hints()[2]);
  EXPECT_EQ(files().size(), kCachedShards + 1);
  reader.reset();
  sync(cache);
  EXPECT_EQ(files().size(), kCachedShards);
  EXPECT_THROW(cache.read_hint(old, 2), CacheError);
}

TEST_F(HintCacheTest, ClientsAtOnceFetchTogetherWhatOneWould) {
  constexpr int kClients = 4;
  std::vector<std::unique_ptr<FakeServer>> servers;
  for (int i = 0; i < kClients; ++i) {
    servers.push_back(std::make_unique<FakeServer>(server_.database));
  }
  std::vector<SyncResult> results(kClients);
  std::vector<std::thread> threads;
  for (int i = 0; i < kClients; ++i) {
    threads.emplace_back([&, i] {
      RemoteDatabase remote(std::make_unique<FakeTransport>(*servers[i]), "http://test");
      HintCache cache(folder_);
      cache.sync(remote, server_.database.manifest_text(), false, {}, results[i]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  uint32_t fetched = 0;
  for (const SyncResult& result : results) fetched += result.shards_fetched;
  EXPECT_EQ(fetched, kCachedShards);
  HintCache cache(folder_);
  EXPECT_TRUE(cache.stored());
  expect_all_hints(cache);
}

TEST_F(HintCacheTest, WaitingForAnotherClientCanBeStopped) {
  HintCache cache(folder_);
  const auto lock = try_lock(folder_ / "sync.lock");
  ASSERT_TRUE(lock);
  const auto stop = [](const ClientProgress& progress) {
    EXPECT_EQ(progress.stage, ClientStage::kWaitingForLock);
    return false;
  };
  EXPECT_THROW(sync(cache, false, stop), CancelledError);
}

TEST_F(HintCacheTest, ADownloadThatTheDiskHasNoRoomForIsNotBegun) {
  std::optional<uint64_t> free = kCachedShards * hint_bytes_ - 1;
  std::filesystem::path asked;
  HintCache cache(folder_, [&](const std::filesystem::path& folder) {
    asked = folder;
    return free;
  });
  EXPECT_THAT(message_of<ResourceError>([&] { sync(cache); }),
              AllOf(HasSubstr(std::to_string(kCachedShards * hint_bytes_)),
                    HasSubstr(std::to_string(*free)), HasSubstr((folder_ / "hints").string()),
                    HasSubstr("--cache")));
  EXPECT_EQ(asked, folder_ / "hints");
  EXPECT_EQ(server_.count("/hint?"), 0u);
  EXPECT_TRUE(files().empty());
  EXPECT_FALSE(cache.stored());

  free = kCachedShards * hint_bytes_;
  sync(cache);
  expect_all_hints(cache);
}

TEST_F(HintCacheTest, OnlyWhatIsMissingNeedsRoom) {
  std::optional<uint64_t> free;  // unknown
  HintCache cache(folder_, [&](const std::filesystem::path&) { return free; });
  sync(cache);
  free = 0;
  EXPECT_NO_THROW(sync(cache));
  server_.database = server_.database.with_other_noise(2, 1).with_other_noise(3, 1);
  free = 2 * hint_bytes_ - 1;
  EXPECT_THROW(sync(cache), ResourceError);
  free = 2 * hint_bytes_;
  sync(cache);
  expect_all_hints(cache);
}

TEST_F(HintCacheTest, TheDiskOfAFolderHasRoom) {
  const std::optional<uint64_t> free = HintCache::free_bytes_of_disk(scratch_.path());
  ASSERT_TRUE(free);
  EXPECT_GT(*free, 0u);
}

// As network and FUSE file systems may, /proc reports a size of 0.
TEST_F(HintCacheTest, TheRoomOfADiskThatReportsNoSizeIsUnknown) {
  struct statvfs status {};
  ASSERT_EQ(statvfs("/proc", &status), 0);
  if (status.f_blocks != 0) GTEST_SKIP() << "/proc reports a size";
  EXPECT_EQ(HintCache::free_bytes_of_disk("/proc"), std::nullopt);
}

TEST_F(HintCacheTest, AFolderThatCannotBeMadeIsNamed) {
  std::ofstream(scratch_.path() / "file") << "x";
  EXPECT_THAT(message_of<InputError>([this] { HintCache(scratch_.path() / "file" / "database"); }),
              HasSubstr("name another folder with --cache"));
}

}  // namespace
}  // namespace blindfuse
