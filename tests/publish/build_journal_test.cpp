#include "host/database/build_journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/errors.h"
#include "tests/publish/builder_testing.h"

namespace blindfuse::builder_testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

namespace fs = std::filesystem;

const std::string kName = "shards/" + std::string(64, 'a') + ".matrix";
const std::string kPending = "hints/.pending-0123456789abcdef01234567";
constexpr FileIdentity kIdentity = {12, 34, 56};

class Journal : public ::testing::Test {
 protected:
  void append(const std::string& text) const {
    std::ofstream(file_, std::ios::app | std::ios::binary) << text;
  }

  void fill() const {
    BuildJournal journal(root_);
    journal.add_folder("shards");
    journal.add_pending(kPending);
    journal.add_file(kName, kIdentity);
  }

  void expect_filled(const BuildJournal& journal) const {
    EXPECT_THAT(journal.folders(), ElementsAre("shards"));
    EXPECT_THAT(journal.pending(), ElementsAre(kPending));
    EXPECT_THAT(journal.files(), ElementsAre(Pair(kName, ElementsAre(kIdentity))));
  }

  const TemporaryFolder folder_;
  const OpenFolder root_{folder_.path()};
  const fs::path file_ = folder_ / ".build-journal";
};

TEST_F(Journal, TellsTheNextBuildWhatWasMade) {
  EXPECT_FALSE(fs::exists(file_));
  fill();
  BuildJournal journal(root_);
  expect_filled(journal);
  EXPECT_TRUE(journal.names_file(kName, kIdentity));
  EXPECT_FALSE(journal.names_file(kName, {12, 34, 57}));
  EXPECT_FALSE(journal.names_file(kName, {12, 35, 56}));
  EXPECT_FALSE(journal.names_file(kName, {13, 34, 56}));
  journal.remove();
  EXPECT_FALSE(fs::exists(file_));
}

TEST_F(Journal, ToleratesALastLineThatWasCutShort) {
  fill();
  const std::string whole = read_whole(file_);
  append("file " + kName + " 77 8");
  expect_filled(BuildJournal(root_));
  // What follows it counts.
  BuildJournal(root_).add_folder("packs");
  EXPECT_THAT(BuildJournal(root_).folders(), ElementsAre("packs", "shards"));
  EXPECT_THAT(BuildJournal(root_).files(), ElementsAre(Pair(kName, ElementsAre(kIdentity))));
  // Also when next to nothing was written.
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    std::ofstream(file_, std::ios::binary) << whole.substr(0, bytes);
    BuildJournal(root_).add_folder("hints");
    EXPECT_TRUE(BuildJournal(root_).names_folder("hints")) << "cut at " << bytes;
  }
}

TEST_F(Journal, NamesNothingElsewhere) {
  fill();
  const std::string hex(64, 'b');
  for (const char* line :
       {"folder ..", "folder /tmp", "folder shards/..", "folder other", "folder ",
        "pending letter.txt", "pending .pending-", "pending .pending-0123456789ABCDEF01234567",
        "pending ../.pending-0123456789abcdef01234567",
        "pending other/.pending-0123456789abcdef01234567",
        "pending shards/x/.pending-0123456789abcdef01234567",
        "pending shards/.pending-0123456789abcdef0123456", "file manifest.json 1 2 3",
        "file ../shards/"}) {
    append(std::string(line) + "\n");
  }
  for (const std::string& name :
       {"../shards/" + hex + ".matrix", "other/" + hex + ".matrix", "/shards/" + hex + ".matrix",
        "shards/../shards/" + hex + ".matrix", "shards/" + hex + ".hint",
        "shards/" + hex.substr(1) + ".matrix", "shards/" + hex + ".matrix.matrix",
        "shards/" + std::string(64, 'B') + ".matrix", hex + ".matrix", "shards/" + hex}) {
    append("file " + name + " 1 2 3\n");
  }
  for (const char* identity : {"", " ", " 1", " 1 2", " 1 2 ", " 1 2 x", " 1 2 3 4", " 1 2 3 ",
                               " -1 2 3", "  1 2 3", " 1 2 99999999999999999999999"}) {
    append("file shards/" + hex + ".matrix" + identity + "\n");
  }
  expect_filled(BuildJournal(root_));
}

std::string refusal_of(const OpenFolder& root) {
  return support::input_error_of([&] { BuildJournal journal(root); });
}

TEST_F(Journal, OfAnotherDirectoryOrOfAnythingElseIsRefused) {
  fill();
  fs::create_directory(folder_ / "copy");
  fs::create_hard_link(file_, (folder_ / "copy") / ".build-journal");
  EXPECT_THAT(refusal_of(OpenFolder(folder_ / "copy")), HasSubstr("came with a copy"));
  std::ofstream(file_) << "dear journal\n";
  EXPECT_THAT(refusal_of(root_), HasSubstr("delete it"));
  EXPECT_EQ(read_whole(file_), "dear journal\n");
  fs::remove(file_);
  fs::create_symlink("elsewhere", file_);
  EXPECT_THAT(refusal_of(root_), HasSubstr("not a file"));
}

// Whoever may prepare the directory gives a file of somebody else a second name there.
TEST_F(Journal, DoesNotWriteIntoAFileWithAnotherName) {
  fill();
  const std::string header = read_whole(file_).substr(0, read_whole(file_).find('\n'));
  for (const std::string& content : {std::string(), header.substr(0, 9), header}) {
    fs::remove(file_);
    std::ofstream(folder_ / "letter.txt", std::ios::binary) << content;
    fs::create_hard_link(folder_ / "letter.txt", file_);
    fill();
    EXPECT_EQ(read_whole(folder_ / "letter.txt"), content);
    BuildJournal journal(root_);
    expect_filled(journal);
    journal.remove();
    EXPECT_EQ(read_whole(folder_ / "letter.txt"), content);
  }
}

// What a loss of power can leave.
TEST_F(Journal, OfZerosIsNone) {
  for (const size_t bytes : {size_t{1}, size_t{5000}}) {
    std::ofstream(file_, std::ios::binary) << std::string(bytes, '\0');
    fill();
    BuildJournal journal(root_);
    expect_filled(journal);
    EXPECT_TRUE(read_whole(file_).starts_with("blindfuse build journal"));
    journal.remove();
  }
}

TEST_F(Journal, StaysWithADirectoryThatMoves) {
  const fs::path there = folder_ / "there";
  fs::create_directory(there);
  {
    const OpenFolder root(there);
    BuildJournal(root).add_folder("hints");
  }
  fs::rename(there, folder_ / "moved");
  const OpenFolder moved(folder_ / "moved");
  EXPECT_TRUE(BuildJournal(moved).names_folder("hints"));
}

}  // namespace
}  // namespace blindfuse::builder_testing
