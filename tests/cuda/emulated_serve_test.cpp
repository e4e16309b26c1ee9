// `blindfuse serve` and `build` on an emulated GPU that computes wrong, hangs or fails: what the
// operator reads, and what clients get.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>
#include <vector>

#include "tests/programs/program_testing.h"

namespace blindfuse::program_testing {
namespace {

const std::string kEmulated = paths::program_folder() + "/blindfuse-emulated";

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

size_t occurrences(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

class EmulatedCudaServe : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string lines;
    for (int i = 0; i < 40; ++i) lines += "key" + std::to_string(i) + "\tvalue " + std::to_string(i) + "\n";
    write_file(folder_ / "input.tsv", lines);
    database_ = folder_ / "db";
    const auto built = build({"--engine", "cpu", "--fresh"}, "");
    ASSERT_EQ(built.status, 0) << built.err;
  }
  void TearDown() override {
    unsetenv("BLINDFUSE_FAKE_CUDA_FAULTS");
    unsetenv("BLINDFUSE_FAKE_CUDA_FAULTS_LATER");
  }

  // faults: of all processes; later: instead, of those that are no self-test.
  static void set_faults(const char* faults, const char* later) {
    setenv("BLINDFUSE_FAKE_CUDA_FAULTS", faults, 1);
    unsetenv("BLINDFUSE_FAKE_CUDA_FAULTS_LATER");
    if (later != nullptr) setenv("BLINDFUSE_FAKE_CUDA_FAULTS_LATER", later, 1);
  }

  ProgramResult build(const std::vector<std::string>& options, const char* faults,
                      const char* later = nullptr) {
    set_faults(faults, later);
    std::vector<std::string> command = {kEmulated, "build",    folder_ / "input.tsv", "--output",
                                        database_, "--mode",   "hint",  "--params",
                                        "lwe-1288"};
    command.insert(command.end(), options.begin(), options.end());
    return run(folder_, command);
  }

  std::unique_ptr<RunningServer> serve(const std::string& engine, const char* faults,
                                       const char* later = nullptr,
                                       std::vector<std::string> options = {}) {
    set_faults(faults, later);
    options.insert(options.end(), {"--engine", engine});
    return std::make_unique<RunningServer>(
        folder_, database_, "127.0.0.1:0", options,
        [](const std::vector<std::string>& command) {
          std::vector<std::string> emulated = command;
          emulated[0] = kEmulated;
          return emulated;
        });
  }

  // Of the first `count` keys.
  ProgramResult get(const RunningServer& server, int count,
                    const std::vector<std::string>& options = {}) {
    std::vector<std::string> command = {kBlindfuseClient, "get", server.url()};
    for (int i = 0; i < count; ++i) command.push_back("key" + std::to_string(i));
    command.insert(command.end(), options.begin(), options.end());
    return run(folder_, command);
  }

  const TemporaryFolder folder_;
  std::string database_;
};

TEST_F(EmulatedCudaServe, AnswersWithKernelsThatPass) {
  const auto server = serve("cuda", "");
  ASSERT_NE(server->url(), "") << server->program().err();
  EXPECT_EQ(get(*server, 1).out, "value 0\n");
  EXPECT_EQ(server->stop(), 0);
  EXPECT_TRUE(contains(server->program().err(), "17 of 17 checks passed")) << server->program().err();
}

// A wrong tile of wgmma: the others answer, and the log names it.
TEST_F(EmulatedCudaServe, AnswersWithoutAKernelThatIsWrong) {
  const auto server = serve("auto", "spoil=scan_wgmma<64>");
  ASSERT_NE(server->url(), "") << server->program().err();
  EXPECT_EQ(get(*server, 5).status, 0);
  EXPECT_EQ(server->stop(), 0);
  const std::string log = server->program().err();
  EXPECT_TRUE(contains(log, "the GPU's kernel wgmma failed its self-test check")) << log;
  EXPECT_TRUE(contains(log, "engine cuda")) << log;
}

TEST_F(EmulatedCudaServe, LeavesAGpuThatIsWrongToTheProcessor) {
  constexpr const char* kAllWrong = "spoil=scan_dp4a,spoil=scan_mma,spoil=scan_wgmma";
  const auto server = serve("auto", kAllWrong);
  ASSERT_NE(server->url(), "") << server->program().err();
  EXPECT_EQ(get(*server, 1).out, "value 0\n");
  EXPECT_EQ(server->stop(), 0);
  const std::string log = server->program().err();
  EXPECT_EQ(occurrences(log, "warning"), 1u) << log;
  EXPECT_TRUE(contains(log, "CUDA device 0 is not used")) << log;
  EXPECT_TRUE(contains(log, "engine cpu:")) << log;

  const auto refused = serve("cuda", kAllWrong);
  EXPECT_EQ(refused->url(), "");
  EXPECT_EQ(refused->program().wait(), 1);
  EXPECT_TRUE(contains(refused->program().err(), "--engine cpu computes on the processor"))
      << refused->program().err();
}

// Right in the self-test, and wrong on the matrix: with auto the processor takes over.
TEST_F(EmulatedCudaServe, LeavesAGpuThatIsWrongOnTheMatrixToTheProcessor) {
  constexpr const char* kAllWrong = "spoil=scan_dp4a,spoil=scan_mma,spoil=scan_wgmma";
  const auto server = serve("auto", "", kAllWrong);
  ASSERT_NE(server->url(), "") << server->program().err();
  EXPECT_EQ(get(*server, 1).out, "value 0\n");
  EXPECT_EQ(server->stop(), 0);
  const std::string log = server->program().err();
  EXPECT_TRUE(contains(log, "the GPU's kernel mma failed its matrix check")) << log;
  EXPECT_TRUE(contains(log, "the GPU is not used, and the processor computes")) << log;

  const auto refused = serve("cuda", "", kAllWrong);
  EXPECT_EQ(refused->url(), "");
  EXPECT_EQ(refused->program().wait(), 1);
}

// That batch gets status 503, the next one is right.
TEST_F(EmulatedCudaServe, WithholdsABatchThatIsWrong) {
  // Without dp4a, which has no room for a canary, wgmma answers every query here. Its first launches
  // multiply the matrix, and the canary by itself.
  const auto server = serve("cuda", "spoil=scan_dp4a", "spoil=scan_wgmma<32>@4");
  ASSERT_NE(server->url(), "") << server->program().err();
  for (int i = 0; i < 6; ++i) {
    const auto got = get(*server, 1);
    EXPECT_EQ(got.status, 0) << got.err;
    EXPECT_EQ(got.out, "value 0\n") << "clients ask again by themselves";
  }
  EXPECT_EQ(server->stop(), 0);
  const std::string log = server->program().err();
  EXPECT_TRUE(contains(log, "the GPU's kernel wgmma failed its canary check")) << log;
  EXPECT_EQ(occurrences(log, "the responses of this batch are withheld"), 1u) << log;
}

// A batch of one client's query, in which there is no canary, and one word of its product wrong.
TEST_F(EmulatedCudaServe, WithholdsOneWrongWordOfOneQuery) {
  // The first launches multiply the matrix, and the canary.
  const auto server = serve("cuda", "", "miscount=scan_dp4a<1>@2");
  ASSERT_NE(server->url(), "") << server->program().err();
  for (int i = 0; i < 3; ++i) {
    const auto got = get(*server, 1);
    EXPECT_EQ(got.status, 0) << got.err;
    EXPECT_EQ(got.out, "value 0\n") << "clients ask again by themselves";
  }
  EXPECT_EQ(server->stop(), 0);
  const std::string log = server->program().err();
  EXPECT_TRUE(contains(log, "the GPU's kernel dp4a failed its product check")) << log;
  EXPECT_EQ(occurrences(log, "the responses of this batch are withheld"), 1u) << log;
}

// The client gets status 503, and the process ends by itself.
TEST_F(EmulatedCudaServe, EndsWhenAKernelNeverDoes) {
  // The first launches multiply the matrix, and the canary.
  const auto server =
      serve("cuda", "", "hang=scan_dp4a<1>@2+", {"--gpu-batch-seconds-max", "1"});
  ASSERT_NE(server->url(), "") << server->program().err();
  const auto got = get(*server, 1, {"--timeout", "60"});
  EXPECT_NE(got.status, 0);
  EXPECT_EQ(server->program().wait(), 1);
  const std::string log = server->program().err();
  EXPECT_TRUE(contains(log, "the device hangs, and the server ends")) << log;
  EXPECT_FALSE(std::filesystem::exists(server->ready_file()));
}

// Nobody waits for an answer: what hangs is the check while nothing is asked.
TEST_F(EmulatedCudaServe, EndsWhenToldToWhileAKernelHangs) {
  const auto server =
      serve("cuda", "", "hang=scan_dp4a<1>@1+", {"--gpu-batch-seconds-max", "5"});
  ASSERT_NE(server->url(), "") << server->program().err();
  EXPECT_EQ(server->stop(), 1);
  EXPECT_TRUE(contains(server->program().err(), "the device hangs, and the server ends"))
      << server->program().err();
  EXPECT_FALSE(std::filesystem::exists(server->ready_file()));
}

// Before anything is served, too, also with auto: a device that hangs is not one to fall back from.
TEST_F(EmulatedCudaServe, EndsWhenAKernelHangsOnTheMatrix) {
  const auto server = serve("auto", "", "hang=scan_mma", {"--gpu-batch-seconds-max", "1"});
  EXPECT_EQ(server->url(), "");
  EXPECT_EQ(server->program().wait(), 1);
  EXPECT_TRUE(contains(server->program().err(), "the GPU did not multiply the matrix in 1 s"))
      << server->program().err();
}

TEST_F(EmulatedCudaServe, EndsWhenTheDeviceIsLost) {
  const auto server = serve("cuda", "", "fault=scan_dp4a<1>@2");
  ASSERT_NE(server->url(), "") << server->program().err();
  get(*server, 1, {"--timeout", "2"});
  EXPECT_EQ(server->program().wait(), 1);
  EXPECT_TRUE(contains(server->program().err(), "cudaErrorIllegalAddress"))
      << server->program().err();
}

TEST_F(EmulatedCudaServe, VerifiesADatabase) {
  const std::vector<std::string> verify = {kEmulated, "inspect",  database_,
                                           "--verify", "--engine", "cuda"};
  set_faults("", nullptr);
  const auto verified = run(folder_, verify);
  EXPECT_EQ(verified.status, 0) << verified.err;
  EXPECT_TRUE(contains(verified.out, "found through the real client")) << verified.out;

  set_faults("", "spoil=scan_dp4a,spoil=scan_mma,spoil=scan_wgmma");
  const auto wrong = run(folder_, verify);
  EXPECT_EQ(wrong.status, 1) << wrong.out;
  EXPECT_TRUE(contains(wrong.err, "the GPU's kernel mma failed its matrix check")) << wrong.err;
}

TEST_F(EmulatedCudaServe, BuildsNothingWithAGpuThatIsWrong) {
  const std::string manifest = read_whole(database_ + "/manifest.json");
  const auto built = build({"--engine", "cuda", "--fresh"}, "", "spoil=scan_mma");
  EXPECT_EQ(built.status, 1);
  EXPECT_TRUE(contains(built.err, "columns of the hint are wrong")) << built.err;
  EXPECT_EQ(read_whole(database_ + "/manifest.json"), manifest);

  const auto right = build({"--engine", "cuda", "--fresh"}, "");
  EXPECT_EQ(right.status, 0) << right.err;
  const auto server = serve("cpu", "");
  EXPECT_EQ(get(*server, 1).out, "value 0\n");
}

}  // namespace
}  // namespace blindfuse::program_testing
