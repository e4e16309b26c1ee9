#include "host/ingest/byte_source.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <thread>

#include "tests/ingest/ingest_testing.h"

namespace blindfuse {
namespace {

using namespace ingest_testing;
using Ownership = FileByteSource::Ownership;

std::string read_to_end(ByteSource& source, size_t block_bytes) {
  std::string all;
  std::vector<char> block(block_bytes);
  while (const size_t got = source.read(block)) all.append(block.data(), got);
  return all;
}

struct Pipe {
  Pipe() {
    if (pipe(ends.data()) != 0) ADD_FAILURE() << "no pipe";
  }
  void write_all(std::string_view bytes) const {
    ASSERT_EQ(write(ends[1], bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  std::array<int, 2> ends{};
};

TEST(ByteSource, CountsWhatIsAheadOfAFilesPosition) {
  const TemporaryDirectory directory;
  const int descriptor = open(directory.write("words", "0123456789").c_str(), O_RDONLY);
  ASSERT_EQ(lseek(descriptor, 4, SEEK_SET), 4);
  FileByteSource source(descriptor, Ownership::kOwned, "words");
  EXPECT_EQ(source.bytes_total(), 6u);
  EXPECT_EQ(read_to_end(source, 4), "456789");
}

TEST(ByteSource, ClosesOnlyWhatItOwns) {
  const Pipe pipe;
  { FileByteSource borrowed(pipe.ends[0], Ownership::kBorrowed, "pipe"); }
  EXPECT_NE(fcntl(pipe.ends[0], F_GETFD), -1);
  { FileByteSource owned(pipe.ends[0], Ownership::kOwned, "pipe"); }
  EXPECT_EQ(fcntl(pipe.ends[0], F_GETFD), -1);
  close(pipe.ends[1]);
}

TEST(ByteSource, ReadsAPipeThatIsFilledPieceByPiece) {
  const Pipe pipe;
  std::thread writer([&] {
    for (const std::string_view piece : {"one", "two", "three"}) {
      pipe.write_all(piece);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    close(pipe.ends[1]);
  });
  FileByteSource source(pipe.ends[0], Ownership::kOwned, "pipe");
  EXPECT_EQ(source.bytes_total(), std::nullopt);
  EXPECT_EQ(read_to_end(source, 1024), "onetwothree");
  writer.join();
}

TEST(ByteSource, ReadsOnAfterASignal) {
  struct sigaction action = {};
  struct sigaction previous = {};
  action.sa_handler = [](int) {};  // and no SA_RESTART: a waiting read returns EINTR
  ASSERT_EQ(sigaction(SIGUSR1, &action, &previous), 0);
  const Pipe pipe;
  std::thread writer([&, reader = pthread_self()] {
    for (int i = 0; i < 10; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      pthread_kill(reader, SIGUSR1);
    }
    pipe.write_all("late");
    close(pipe.ends[1]);
  });
  FileByteSource source(pipe.ends[0], Ownership::kOwned, "pipe");
  std::string all;
  EXPECT_EQ(error_of([&] { all = read_to_end(source, 1024); }), "");
  EXPECT_EQ(all, "late");
  writer.join();
  sigaction(SIGUSR1, &previous, nullptr);
}

TEST(ByteSource, SaysThatAFileMayNotBeRead) {
  const TemporaryDirectory directory;
  const std::string path = directory.write("secret", "");
  std::filesystem::permissions(path, std::filesystem::perms::none);
  // Root may read everything, so root becomes the user `nobody` for a moment.
  constexpr uid_t kNobody = 65534;
  const uid_t self = geteuid();
  if (self == 0 && seteuid(kNobody) != 0) GTEST_SKIP() << "root cannot become another user";
  const std::string error = error_of([&] { open_file(path); });
  ASSERT_EQ(seteuid(self), 0);
  EXPECT_EQ(error, path + ": Permission denied; expected a readable file");
}

TEST(ByteSource, RefusesADescriptorThatIsNotOpen) {
  EXPECT_EQ(error_of([] { FileByteSource(-1, Ownership::kBorrowed, "standard input"); }),
            "standard input: Bad file descriptor; expected a readable file");
}

}  // namespace
}  // namespace blindfuse
