// What a session reads of its hints, and when: never what depends on a key.
#include "client/checked_hints.h"

#include <blindfuse/errors.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "client/session.h"
#include "tests/client/client_testing.h"
#include "tests/client/fake_server.h"
#include "tests/client/look_ups.h"

namespace blindfuse {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint32_t kShards = 5;

void alter_byte(const std::filesystem::path& path) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  const char byte = static_cast<char>(file.get() ^ 1);
  file.seekp(0);
  file.put(byte);
}

// An index database of five shards: entry i lies in shard i (docs/PROTOCOL.md, section 4).
class HintReadsTest : public FakeServerTest {
 protected:
  HintReadsTest() : FakeServerTest(ServedDatabase::with_noise(kShards, 2, 0)) {}

  ClientOptions options(bool are_kept = true) const {
    ClientOptions options = FakeServerTest::options();
    const uint64_t bytes = server_.database.layout().hint_bytes();
    options.hint_memory_bytes_max = are_kept ? bytes : bytes - 1;
    return options;
  }

  std::filesystem::path hints() const { return folder() / "hints"; }
  std::filesystem::path hint_path(uint32_t shard) const { return hints() / names().at(shard); }
  // Of the shards' files, in the shards' order.
  std::vector<std::string> names() const {
    const DatabaseDescription database(server_.database.manifest_text(), server_.database.table());
    std::vector<std::string> names;
    for (uint32_t shard = 0; shard < kShards; ++shard) {
      names.push_back(hint_file_name(database.table()[shard].hint));
    }
    return names;
  }

  // Every key of the database and one that there is not.
  static std::vector<std::string> keys() { return {"0", "1", "2", "3", "4", "12"}; }
};

// Which files of a folder are opened, as the system tells (inotify), in their order.
class WatchedFiles {
 public:
  explicit WatchedFiles(const std::filesystem::path& folder)
      : inotify_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    // Reading is watched too: opening one file twice without an event in between would be told
    // once.
    if (inotify_ < 0 || inotify_add_watch(inotify_, folder.c_str(), IN_OPEN | IN_ACCESS) < 0) {
      throw std::runtime_error("inotify: " + std::string(std::strerror(errno)));
    }
  }
  ~WatchedFiles() { close(inotify_); }
  WatchedFiles(const WatchedFiles&) = delete;
  WatchedFiles& operator=(const WatchedFiles&) = delete;

  // The names of those that were opened since the last call.
  std::vector<std::string> take_opened() {
    std::vector<std::string> names;
    std::array<char, 65'536> events;
    for (;;) {
      const ssize_t size = read(inotify_, events.data(), events.size());
      if (size < 0 && errno == EAGAIN) return names;
      if (size <= 0) throw std::runtime_error("inotify: " + std::string(std::strerror(errno)));
      for (size_t at = 0; at < static_cast<size_t>(size);) {
        inotify_event event;
        std::memcpy(&event, events.data() + at, sizeof event);
        if ((event.mask & IN_Q_OVERFLOW) != 0) throw std::runtime_error("inotify: too many events");
        const bool is_file_opened = (event.mask & IN_OPEN) != 0 && event.len > 0;
        if (is_file_opened) names.emplace_back(events.data() + at + sizeof event);
        at += sizeof event + event.len;
      }
    }
  }

 private:
  int inotify_;
};

TEST_F(HintReadsTest, EveryProcessReadsAllHintsWhateverItsKey) {
  session(options()).sync();
  for (const bool are_kept : {true, false}) {
    std::vector<std::string> first;
    for (const std::string& key : keys()) {
      WatchedFiles watched(hints());
      value_of(session(options(are_kept)), key);
      const std::vector<std::string> opened = watched.take_opened();
      if (first.empty()) first = opened;
      EXPECT_EQ(opened, first) << key;
      EXPECT_GE(opened.size(), 2 * kShards);  // their sizes, and all of their bytes
    }
  }
}

TEST_F(HintReadsTest, HintsThatAreKeptAreReadOnce) {
  Session session = this->session(options());
  value_of(session, "3");
  WatchedFiles watched(hints());
  for (const std::string& key : keys()) value_of(session, key);
  EXPECT_THAT(watched.take_opened(), IsEmpty());
}

TEST_F(HintReadsTest, HintsThatAreNotKeptAreAllReadInEveryLookUp) {
  Session session = this->session(options(false));
  value_of(session, "3");
  WatchedFiles watched(hints());
  for (const std::string& key : keys()) {
    value_of(session, key);
    EXPECT_EQ(watched.take_opened(), names()) << key;
  }
  const std::vector<std::string> many(kQueriesPerRequest + 4, "2");
  values_of(session, many);
  EXPECT_EQ(watched.take_opened(), names());
  values_of(session, std::vector<std::string>());
  EXPECT_THAT(watched.take_opened(), IsEmpty());
}

TEST_F(HintReadsTest, AnAlteredHintOfAnyShardIsFoundBeforeAQueryIsSent) {
  session(options()).sync();
  for (const HintFiles files : {HintFiles::kOnDisk, HintFiles::kInMemory}) {
    for (const bool are_kept : {true, false}) {
      for (uint32_t shard = 0; shard < kShards; ++shard) {
        alter_byte(hint_path(shard));
        std::vector<std::string> errors;
        for (const std::string& key : keys()) {
          try {
            value_of(session(options(are_kept), fill_from_system, files), key);
            ADD_FAILURE() << shard << ' ' << key;
          } catch (const CacheError& error) {
            errors.emplace_back(error.what());
            EXPECT_EQ(errors.back(), errors.front());
            EXPECT_THAT(errors.back(), HasSubstr(names()[shard]));
          }
        }
        alter_byte(hint_path(shard));  // as it was
      }
    }
  }
  EXPECT_EQ(server_.count("/queries"), 0u);
  value_of(session(options()), "0");
  EXPECT_EQ(server_.count("/queries"), 1u);
}

TEST_F(HintReadsTest, AHintThatGoesLaterFailsEveryLookUpOrNone) {
  Session kept = session(options());
  Session not_kept = session(options(false));
  value_of(kept, "0");
  value_of(not_kept, "0");
  std::filesystem::remove(hint_path(3));
  for (const std::string& key : keys()) {
    EXPECT_NO_THROW(value_of(kept, key)) << key;
    EXPECT_THROW(value_of(not_kept, key), CacheError) << key;
  }
}

TEST_F(HintReadsTest, TheHintsOfAnotherEpochAreCheckedBeforeItIsAsked) {
  Session session = this->session(options());
  value_of(session, "1");
  server_.database = server_.database.with_other_noise(2, 1);
  value_of(session, "1");
  EXPECT_EQ(server_.count("/queries"), 3u);  // of them one that told of the epoch
  server_.database = server_.database.with_other_noise(4, 1);
  session.sync();
  alter_byte(hint_path(0));
  EXPECT_THROW(value_of(session, "1"), CacheError);
  EXPECT_EQ(server_.count("/queries"), 3u);
}

TEST_F(HintReadsTest, CheckingTellsHowFarItIsAndCanBeStopped) {
  session(options()).sync();
  ClientOptions stopping = options();
  std::vector<uint64_t> checked;
  bool goes_on = false;
  stopping.progress = [&](const ClientProgress& progress) {
    if (progress.stage != ClientStage::kCheckingHints) return true;
    EXPECT_EQ(progress.total, server_.database.layout().hint_bytes());
    checked.push_back(progress.done);
    return goes_on;
  };
  Session session = this->session(stopping);
  EXPECT_THROW(value_of(session, "1"), CancelledError);
  ASSERT_EQ(checked, std::vector<uint64_t>{0});
  EXPECT_EQ(server_.count("/queries"), 0u);
  goes_on = true;
  value_of(session, "1");
  EXPECT_EQ(checked.back(), server_.database.layout().hint_bytes());
}

// A database whose hints are in a cache.
struct CachedDatabase {
  explicit CachedDatabase(ServedDatabase served) : server(std::move(served)) {}

  SyncResult result;
  ScratchFolder scratch;
  FakeServer server;
  RemoteDatabase remote{std::make_unique<FakeTransport>(server), "http://test"};
  HintCache cache{scratch.path()};
  const DatabaseDescription database =
      cache.sync(remote, server.database.manifest_text(), false, {}, result);
  const uint64_t bytes = database.layout().hint_bytes();
};

// 4500 columns in five packs: a shard's 500 columns begin at 500 times its number, a pack's 1024 at
// 1024 times its number, and every shard takes two packs.
TEST(CheckedHints, GivesEveryShardItsPartsInAllThreeWays) {
  const std::vector<std::vector<size_t>> packs_of_shards = {{0, 1}, {0, 1}, {0, 1}, {1, 2}, {1, 2},
                                                            {2, 3}, {2, 3}, {3, 4}, {3, 4}};
  CachedDatabase cached(ServedDatabase::with_noise(9, 500, 0, "ring-2048", 18));
  const auto expect_all = [&](const CheckedHints& hints, bool are_kept) {
    EXPECT_EQ(hints.are_kept(), are_kept);
    const std::vector<uint32_t> shards = {8, 0, 3, 3, 1, 2, 4, 5, 6, 7};
    std::vector<int> used(shards.size());
    hints.for_each(shards,
                   [&](size_t i, std::span<const uint8_t> hint) {
                     Bytes expected;
                     for (const size_t pack : packs_of_shards[shards[i]]) {
                       const Bytes& mask = cached.server.database.hints().at(pack);
                       expected.insert(expected.end(), mask.begin(), mask.end());
                     }
                     EXPECT_EQ(Bytes(hint.begin(), hint.end()), expected) << shards[i];
                     ++used[i];
                   },
                   {});
    EXPECT_EQ(used, std::vector<int>(shards.size(), 1));
  };
  expect_all(CheckedHints(cached.cache, cached.database, HintFiles::kOnDisk, cached.bytes, {}),
             true);
  expect_all(CheckedHints(cached.cache, cached.database, HintFiles::kOnDisk, cached.bytes - 1, {}),
             false);
  expect_all(CheckedHints(cached.cache, cached.database, HintFiles::kInMemory, cached.bytes, {}),
             false);
}

// Kilobytes of the mapping that holds `address`, by this name in /proc/self/smaps.
uint64_t smaps_kilobytes(const void* address, const std::string& name) {
  std::ifstream maps("/proc/self/smaps");
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  bool is_there = false;
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) {
      is_there = begin <= wanted && wanted < end;
    } else if (is_there && line.starts_with(name + ":")) {
      return std::stoull(line.substr(name.size() + 1));
    }
  }
  return 0;
}

// What the system swaps out would tell which shards were asked for.
TEST(CheckedHints, TouchesAllThatIsKeptForOneShard) {
  CachedDatabase cached(ServedDatabase::with_noise(40, 400, 0));
  const CheckedHints hints(cached.cache, cached.database, HintFiles::kOnDisk, cached.bytes, {});
  const std::vector<uint32_t> shard = {20};
  const uint8_t* kept = nullptr;
  const auto note = [&](size_t, std::span<const uint8_t> hint) { kept = hint.data(); };
  hints.for_each(shard, note, {});
  if (!(std::ofstream("/proc/self/clear_refs") << 1 << std::flush)) {
    GTEST_SKIP() << "the system does not say which pages were touched";
  }
  if (smaps_kilobytes(kept, "Referenced") * 1024 > cached.bytes / 2) {
    GTEST_SKIP() << "the system does not forget which pages were touched";
  }
  hints.for_each(shard, note, {});
  EXPECT_GE(smaps_kilobytes(kept, "Referenced") * 1024 + 2 * 4096, cached.bytes);
}

// Hints that are larger than the memory for them take long to read, in every look-up.
TEST_F(HintReadsTest, ALookUpCanBeCancelledWhileHintsAreReadAgain) {
  int checks = 0;
  int checks_allowed = 1000;
  ClientOptions options = this->options(false);
  options.progress = [&](const ClientProgress& progress) {
    return progress.stage != ClientStage::kCheckingHints || ++checks <= checks_allowed;
  };
  Session session = this->session(options);
  value_of(session, "3");  // has opened the hints
  checks = 0;
  value_of(session, "3");
  EXPECT_GT(checks, 0);
  checks = 0;
  checks_allowed = 0;
  WatchedFiles watched(hints());
  EXPECT_THROW(value_of(session, "3"), CancelledError);
  EXPECT_THAT(watched.take_opened(), IsEmpty());  // before the first of them
}

}  // namespace
}  // namespace blindfuse
