// A file that is in a directory before, and is not a build's own, is there afterwards with every
// byte: whatever it is and wherever it lies, whatever is asked for, and whenever the program is
// killed.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>

#include "tests/programs/killing.h"

namespace blindfuse::program_testing {
namespace {

namespace fs = std::filesystem;

using Entries = std::map<std::string, std::string>;  // what each one is, by its path

const Words kFolders = {"tables", "shards", "hints", "packs", "samples"};
const Words kSuffixes = {".table", ".matrix", ".hint", ".pack", ".json"};

std::string description_of(const fs::path& path) {
  const fs::file_status status = fs::symlink_status(path);
  if (fs::is_symlink(status)) return "link to " + fs::read_symlink(path).string();
  if (fs::is_directory(status)) return "folder";
  if (fs::is_regular_file(status)) return "file " + hash_of(read_whole(path));
  return fs::exists(status) ? "something else" : "nothing";
}

Entries entries_below(const fs::path& root) {
  Entries entries;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    entries[entry.path()] = description_of(entry.path());
  }
  return entries;
}

class Round {
 public:
  Round(unsigned seed, const fs::path& database) : random_(seed), template_(database) {
    fs::create_directories(outside_ / "folder");
    write_file(outside_ / "letter.txt", "dear");
    write_file(outside_ / "folder" / (hex() + ".matrix"), "not a matrix");
    write_file(good_, "k1\tv\nk2\tw\n");
    write_file(other_, "k1\tv\nk3\tx\n");
    write_file(bad_, "k1\tv\nno tab\n");
    start();
    for (int i = number(0, 4); i > 0; --i) add_foreign();
    remember(outside_);
    remember(good_);
    remember(other_);
    remember(bad_);
  }

  void run_commands() {
    for (int i = number(1, 4); i > 0; --i) run_one();
    // Nothing is made elsewhere, either.
    for (const auto& [path, description] : entries_below(outside_)) {
      EXPECT_TRUE(foreign_.contains(path)) << "made: " << path << story_;
    }
  }

  int killed = 0;
  int refused = 0;
  int built = 0;

 private:
  int number(int least, int most) { return std::uniform_int_distribution(least, most)(random_); }
  bool chance(int percent) { return number(1, 100) <= percent; }

  template <typename Item>
  const Item& one_of(const std::vector<Item>& items) {
    return items[static_cast<size_t>(number(0, static_cast<int>(items.size()) - 1))];
  }

  std::string hex(size_t digits = 64) {
    std::string text;
    while (text.size() < digits) text += "0123456789abcdef"[number(0, 15)];
    return text;
  }

  void remember(const fs::path& path) {
    foreign_[path] = description_of(path);
    if (foreign_[path] == "folder") foreign_.merge(entries_below(path));
  }

  // The initial state: nothing, a database, what a killed build left of either, or a copy.
  void start() {
    if (chance(10)) return;
    if (chance(85)) fs::copy(template_, root_, fs::copy_options::recursive);
    if (chance(60)) {
      story_ += "\na build is killed before";
      run(folder_, killed_at_call(build_of(one_of<fs::path>({good_, other_})), number(1, 70)));
    }
    if (!fs::exists(root_) || chance(85)) return;
    // A copy, whose manifest is to come last.
    story_ += "\na copy without a manifest";
    const fs::path original = folder_ / "original";
    fs::rename(root_, original);
    fs::copy(original, root_,
             chance(50) ? fs::copy_options::recursive
                        : fs::copy_options::recursive | fs::copy_options::create_hard_links);
    fs::remove(root_ / "manifest.json");
    for (const auto& [path, description] : entries_below(root_)) {
      // The lock is not content.
      if (description != "folder" && fs::path(path).filename() != ".lock") remember(path);
    }
  }

  void add_foreign() {
    fs::create_directories(root_);
    const size_t kind = static_cast<size_t>(number(0, 4));
    const fs::path in = chance(30) ? root_ : root_ / kFolders[kind];
    const std::vector<std::function<fs::path()>> names = {
        [&] { return in / "letter.txt"; },
        [&] { return in / (hex() + kSuffixes[kind]); },
        [&] { return in / (hex() + one_of(kSuffixes)); },
        [&] { return in / (".pending-" + hex(24)); },
        [&] { return in / ".pending-mine"; },
        [&] { return in / "nested" / "folder" / (hex() + kSuffixes[kind]); },
        [&] {
          return root_ / one_of<std::string>({"manifest.json", "retired.txt", ".build-journal"});
        },
        [&] { return root_ / kFolders[kind]; },
    };
    const fs::path path = one_of(names)();
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    // Files that were added before may be in the way.
    if (!fs::is_directory(path.parent_path(), error)) return;
    if (fs::exists(fs::symlink_status(path))) return;
    const int what = number(1, 10);
    if (what <= 5) {
      write_file(path, "foreign " + hex(8) + "\n");
    } else if (what == 6) {
      fs::create_directory(path);
      write_file(path / "inside", "foreign");
    } else if (what == 7) {
      fs::create_symlink(path.filename(), path);  // a loop
    } else if (what == 8) {
      fs::create_symlink(outside_ / "letter.txt", path);
    } else if (what == 9) {
      fs::create_directory_symlink(outside_ / "folder", path);
    } else {
      fs::copy_file(good_, path);
      fs::rename(path, path.string() + ".tsv");
      inputs_inside_.push_back(path.string() + ".tsv");
      remember(inputs_inside_.back());
      return;
    }
    remember(path);
  }

  Words build_of(const fs::path& input) const {
    return {kBlindfuse, "build", input,      "--output", root_,       "--params", "lwe-1288",
            "--shards", "2",     "--format", "tsv",      "--threads", "2"};
  }

  void run_one() {
    std::vector<fs::path> inputs = {good_, good_, other_, other_, bad_, folder_ / "missing.tsv"};
    inputs.insert(inputs.end(), inputs_inside_.begin(), inputs_inside_.end());
    Words command = build_of(one_of(inputs));
    if (chance(25)) command.emplace_back("--fresh");
    if (chance(10)) command = {kBlindfuse, "inspect", root_};
    if (chance(5)) command = {kBlindfuse, "plan", "--keys", "10", "--value-bytes", "5"};
    story_ += "\n";
    for (const std::string& word : command) story_ += word + " ";
    if (chance(50)) {
      const int call = number(1, chance(30) ? 8 : 70);  // what is refused makes few calls
      story_ += "killed at " + std::to_string(call);
      command = killed_at_call(command, call);
    }
    const ProgramResult result = run(folder_, command);
    story_ += ": " + std::to_string(result.status) + " " + result.err;
    if (result.status == -SIGKILL) ++killed;
    if (result.status == 1) ++refused;
    if (result.status == 0) ++built;
    EXPECT_TRUE(result.status == 0 || result.status == 1 || result.status == -SIGKILL) << story_;
    for (const auto& [path, description] : foreign_) {
      ASSERT_EQ(description_of(path), description) << path << story_;
    }
    if (result.status == 0 && std::ranges::count(command, "build") > 0) {
      EXPECT_NO_THROW(load(root_)) << story_;
    }
  }

  std::mt19937 random_;
  const fs::path template_;
  const TemporaryFolder folder_;
  const fs::path root_ = folder_ / "db";
  const fs::path outside_ = folder_ / "outside";
  const fs::path good_ = folder_ / "good.tsv";
  const fs::path other_ = folder_ / "other.tsv";
  const fs::path bad_ = folder_ / "bad.tsv";
  std::vector<fs::path> inputs_inside_;
  Entries foreign_;
  std::string story_;
};

TEST(ForeignFiles, StayWhateverABuildDoes) {
  const char* asked = std::getenv("BLINDFUSE_FOREIGN_FILES_ROUNDS");
  const int rounds = asked != nullptr ? std::atoi(asked) : 25;
  const char* asked_seed = std::getenv("BLINDFUSE_FOREIGN_FILES_SEED");
  const unsigned seed =
      asked_seed != nullptr ? static_cast<unsigned>(std::atoi(asked_seed)) : 20'261'123;
  std::printf("seed %u, %d rounds\n", seed, rounds);
  const TemporaryFolder folder;
  build({{"k1", "v"}, {"k2", "w"}}, folder / "db");
  int killed = 0;
  int refused = 0;
  int built = 0;
  for (int i = 0; i < rounds && !::testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE("seed " + std::to_string(seed + static_cast<unsigned>(i)));
    Round round(seed + static_cast<unsigned>(i), folder / "db");
    round.run_commands();
    killed += round.killed;
    refused += round.refused;
    built += round.built;
  }
  std::printf("%d killed, %d refused, %d came to their end\n", killed, refused, built);
  EXPECT_GT(killed, 0);
  EXPECT_GT(refused, 0);
  EXPECT_GT(built, 0);
}

}  // namespace
}  // namespace blindfuse::program_testing
