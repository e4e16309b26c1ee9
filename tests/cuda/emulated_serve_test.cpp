// `blindfuse serve` and `build` on an emulated GPU that computes wrong, hangs or fails: what the
// operator reads, and what clients get.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <iterator>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "src/system/file.h"
#include "tests/programs/program_testing.h"
#include "tests/server/loopback_client.h"

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

// Whether the log says that the program ends since this takes too long, however long it was.
bool hangs_in(const std::string& log, const std::string& what) {
  return std::regex_search(
      log, std::regex("the engine has been busy with (one batch for [0-9]+ s, and "
                      "with )?" +
                      what + " for [0-9]+ s: the device hangs, and the program ends"));
}

class EmulatedCudaServe : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string lines;
    for (int i = 0; i < 40; ++i)
      lines += "key" + std::to_string(i) + "\tvalue " + std::to_string(i) + "\n";
    write_file(folder_ / "input.tsv", lines);
    database_ = folder_ / "db";
    // An emulator takes the time that it takes.
    setenv("BLINDFUSE_GPU_BATCH_SECONDS_MAX", "600", 1);
    const auto built = build({"--engine", "cpu", "--fresh"}, "");
    ASSERT_EQ(built.status, 0) << built.err;
  }
  void TearDown() override {
    unsetenv("BLINDFUSE_FAKE_CUDA_FAULTS");
    unsetenv("BLINDFUSE_FAKE_CUDA_FAULTS_LATER");
    unsetenv("BLINDFUSE_GPU_BATCH_SECONDS_MAX");
  }

  // faults: of all processes; later: instead, of those that are not a self-test.
  static void set_faults(const char* faults, const char* later) {
    setenv("BLINDFUSE_FAKE_CUDA_FAULTS", faults, 1);
    unsetenv("BLINDFUSE_FAKE_CUDA_FAULTS_LATER");
    if (later != nullptr) setenv("BLINDFUSE_FAKE_CUDA_FAULTS_LATER", later, 1);
  }

  ProgramResult build(const std::vector<std::string>& options, const char* faults,
                      const char* later = nullptr) {
    set_faults(faults, later);
    std::vector<std::string> command = {kEmulated,  "build",    folder_ / "input.tsv",
                                        "--output", database_,  "--mode",
                                        "hint",     "--params", "lwe-1288"};
    command.insert(command.end(), options.begin(), options.end());
    return run(folder_, command);
  }

  std::unique_ptr<RunningServer> serve(const std::string& engine, const char* faults,
                                       const char* later = nullptr,
                                       std::vector<std::string> options = {},
                                       const std::string& log = "") {
    set_faults(faults, later);
    options.insert(options.end(), {"--engine", engine});
    return std::make_unique<RunningServer>(
        folder_, database_, "127.0.0.1:0", options, [&](const std::vector<std::string>& command) {
          std::vector<std::string> emulated = command;
          emulated[0] = kEmulated;
          if (log.empty()) return emulated;
          const std::string logging[] = {"sh", "-c", "exec 2>\"$0\"; exec \"$@\"", log};
          emulated.insert(emulated.begin(), std::begin(logging), std::end(logging));
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

  // As the log says it.
  static size_t query_bytes(const std::string& log) {
    const std::string before = "a query has ";
    const size_t at = log.find(before);
    return at == std::string::npos ? 0 : std::stoul(log.substr(at + before.size()));
  }

  const TemporaryFolder folder_;
  std::string database_;
};

TEST_F(EmulatedCudaServe, AnswersWithKernelsThatPass) {
  const auto server = serve("cuda", "");
  ASSERT_NE(server->url(), "") << server->program().err();
  EXPECT_EQ(get(*server, 1).out, "value 0\n");
  EXPECT_EQ(server->stop(), 0);
  EXPECT_TRUE(contains(server->program().err(), "23 of 23 checks passed"))
      << server->program().err();
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
  constexpr const char* kAllWrong =
      "spoil=scan_dp4a,spoil=scan_mma,spoil=scan_wgmma,spoil=scan_wgmma_tma";
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
  constexpr const char* kAllWrong =
      "spoil=scan_dp4a,spoil=scan_mma,spoil=scan_wgmma,spoil=scan_wgmma_tma";
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

// Right there, too, and wrong in the first query, which is the server's own: in the rounding of its
// response, or where no kernel is left for its product.
TEST_F(EmulatedCudaServe, LeavesAGpuThatIsWrongInTheFirstQueryToTheProcessor) {
  for (const char* fault :
       {"skip=round_products", "skip=cut_bit_sequences", "fault=round_products"}) {
    SCOPED_TRACE(fault);
    const auto server = serve("auto", "", fault);
    ASSERT_NE(server->url(), "") << server->program().err();
    EXPECT_EQ(get(*server, 1).out, "value 0\n");
    EXPECT_EQ(server_testing::LoopbackClient(server->url())
                  .ask(server_testing::get_request("/health/ready"))
                  .status,
              200);
    EXPECT_EQ(server->stop(), 0);
    const std::string log = server->program().err();
    EXPECT_EQ(occurrences(log, "the GPU is not used, and the processor computes"), 1u) << log;
    EXPECT_TRUE(contains(log, "engine cpu:")) << log;

    const auto refused = serve("cuda", "", fault);
    EXPECT_EQ(refused->url(), "");
    EXPECT_EQ(refused->program().wait(), 1);
  }
}

// That batch gets status 503, the next one is right.
TEST_F(EmulatedCudaServe, WithholdsABatchThatIsWrong) {
  // Without dp4a, which has no room for a canary, wgmma-tma answers every query here. Its first
  // launches multiply the matrix, and the canary by itself.
  const auto server = serve("cuda", "spoil=scan_dp4a", "spoil=scan_wgmma_tma<32>@4");
  ASSERT_NE(server->url(), "") << server->program().err();
  for (int i = 0; i < 6; ++i) {
    const auto got = get(*server, 1);
    EXPECT_EQ(got.status, 0) << got.err;
    EXPECT_EQ(got.out, "value 0\n") << "clients ask again by themselves";
  }
  EXPECT_EQ(server->stop(), 0);
  const std::string log = server->program().err();
  EXPECT_TRUE(contains(log, "the GPU's kernel wgmma-tma failed its canary check")) << log;
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
  const auto server = serve("cuda", "", "hang=scan_dp4a<1>@2+", {"--gpu-batch-seconds-max", "1"});
  ASSERT_NE(server->url(), "") << server->program().err();
  const auto got = get(*server, 1, {"--timeout", "60"});
  EXPECT_NE(got.status, 0);
  EXPECT_EQ(server->program().wait(), 1);
  const std::string log = server->program().err();
  EXPECT_TRUE(contains(log, "the device hangs, and the program ends")) << log;
  EXPECT_FALSE(std::filesystem::exists(server->ready_file()));
}

// A pipe that is full, and has no reader.
TEST_F(EmulatedCudaServe, EndsWhereItsLogHangsToo) {
  const std::string log = folder_ / "log";
  ASSERT_EQ(mkfifo(log.c_str(), 0600), 0);
  const FileDescriptor pipe(open(log.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  ASSERT_TRUE(pipe.is_open());
  const auto server =
      serve("cuda", "", "hang=scan_dp4a<1>@2+", {"--gpu-batch-seconds-max", "1"}, log);
  ASSERT_NE(server->url(), "");
  while (write(pipe.get(), "x", 1) == 1) {
  }
  const auto got = get(*server, 1, {"--timeout", "60"});
  EXPECT_NE(got.status, 0);
  for (int i = 0; i < 6'000 && !server->program().has_ended(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ASSERT_TRUE(server->program().has_ended());
  EXPECT_EQ(server->program().wait(), 1);
}

TEST_F(EmulatedCudaServe, EndsWhenToldToWhileAKernelHangs) {
  const auto server = serve("cuda", "", "hang=scan_dp4a<1>@2+", {"--gpu-batch-seconds-max", "5"});
  ASSERT_NE(server->url(), "") << server->program().err();
  const RunningProgram client(folder_, {kBlindfuseClient, "get", server->url(), "key0"});
  // Until its query is in the engine.
  server_testing::LoopbackClient admin(server->admin_url());
  while (!contains(admin.ask(server_testing::get_request("/metrics")).body,
                   "blindfuse_queue_wait_seconds_count 1")) {
  }
  EXPECT_EQ(server->stop(), 1);
  EXPECT_TRUE(contains(server->program().err(), "the device hangs, and the program ends"))
      << server->program().err();
  EXPECT_FALSE(std::filesystem::exists(server->ready_file()));
}

// Before anything is served, too, also with auto: a device that hangs is not one to fall back from.
// Whatever it is that does not return.
TEST_F(EmulatedCudaServe, EndsWhenTheDeviceHangsBeforeItServes) {
  const std::pair<const char*, const char*> hangs[] = {
      {"hang=scan_mma", "a check of the kernels on the matrix"},
      {"freeze=cudaMemcpy2DAsync", "columns on their way to it"},
      // The waits before it are for the question whether there is wgmma, and for the end of its
      // stream.
      {"freeze=cudaStreamSynchronize@2", "a checksum of the matrix"},
      // The first query of the server's own; the launch before it multiplies the matrix.
      {"hang=scan_dp4a<1>@1", "a query of the server's own"},
  };
  for (const auto& [fault, what] : hangs) {
    const auto server = serve("auto", "", fault, {"--gpu-batch-seconds-max", "1"});
    EXPECT_EQ(server->url(), "") << fault;
    EXPECT_EQ(server->program().wait(), 1) << fault;
    const std::string log = server->program().err();
    EXPECT_TRUE(hangs_in(log, what)) << fault << "\n" << log;
  }
}

// While clients are answered, who get status 503 then, and no connection that is cut.
TEST_F(EmulatedCudaServe, EndsWhenTheDeviceHangsInACheckOfANewEpoch) {
  // The first epoch has the first launch of this tile, and its checks while nothing is asked none.
  const auto server = serve("cuda", "", "hang=scan_mma<16>@1+",
                            {"--gpu-batch-seconds-max", "2", "--watch-seconds", "1"});
  ASSERT_NE(server->url(), "") << server->program().err();
  const std::string query(query_bytes(server->program().err()), '\0');
  const auto ask = [&](const std::string& request) {
    return server_testing::LoopbackClient(server->url()).ask(request);
  };
  const std::string epoch =
      nlohmann::json::parse(ask(server_testing::get_request("/v1/database")).body).at("epoch");
  write_file(folder_ / "input.tsv", "key0\tanother value\n");
  const auto built = build({"--engine", "cpu", "--allow-shrink"}, "");
  ASSERT_EQ(built.status, 0) << built.err;
  int status = 200;
  while (status == 200) {
    status = ask(server_testing::post_request("/v1/epochs/" + epoch + "/queries",
                                              "application/octet-stream", query))
                 .status;
  }
  EXPECT_EQ(status, 503);
  EXPECT_EQ(server->program().wait(), 1);
  const std::string log = server->program().err();
  EXPECT_TRUE(contains(log, "loading epoch")) << log;
  // What hangs, and not only the batch that waits for it.
  EXPECT_TRUE(hangs_in(log, "a check of the kernels on the matrix")) << log;
  EXPECT_FALSE(std::filesystem::exists(server->ready_file()));
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
  const std::vector<std::string> verify = {kEmulated,  "inspect",  database_,
                                           "--verify", "--engine", "cuda"};
  set_faults("", nullptr);
  const auto verified = run(folder_, verify);
  EXPECT_EQ(verified.status, 0) << verified.err;
  EXPECT_TRUE(contains(verified.out, "found through the real client")) << verified.out;

  set_faults("", "spoil=scan_dp4a,spoil=scan_mma,spoil=scan_wgmma,spoil=scan_wgmma_tma");
  const auto wrong = run(folder_, verify);
  EXPECT_EQ(wrong.status, 1) << wrong.out;
  EXPECT_TRUE(contains(wrong.err, "the GPU's kernel mma failed its matrix check")) << wrong.err;

  // In a batch of the client's: the matrix had the first launch, and the server's own query one.
  set_faults("", "hang=scan_dp4a<1>@2+");
  std::vector<std::string> soon = verify;
  soon.insert(soon.end(), {"--gpu-batch-seconds-max", "1"});
  const auto hanging = run(folder_, soon);
  EXPECT_EQ(hanging.status, 1) << hanging.out;
  EXPECT_TRUE(hangs_in(hanging.err, "one batch")) << hanging.err;
}

TEST_F(EmulatedCudaServe, EndsABuildWhenTheDeviceHangs) {
  const std::string manifest = read_whole(database_ + "/manifest.json");
  const auto built =
      build({"--engine", "cuda", "--fresh", "--gpu-batch-seconds-max", "1"}, "", "hang=scan_mma");
  EXPECT_EQ(built.status, 1);
  // Where a panel's work is done at once, its launch does not return.
  EXPECT_TRUE(hangs_in(built.err, "(a panel|the last panels) of the hint")) << built.err;
  EXPECT_EQ(read_whole(database_ + "/manifest.json"), manifest);
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
