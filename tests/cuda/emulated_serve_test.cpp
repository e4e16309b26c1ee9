// `blindfuse serve` and `build` on an emulated GPU that computes wrong, hangs or fails: what the
// operator reads, and what clients get.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
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
    setenv("STATE_DIRECTORY", (folder_ / "state").c_str(), 1);
    const auto built = build({"--engine", "cpu", "--fresh"}, "");
    ASSERT_EQ(built.status, 0) << built.err;
  }
  void TearDown() override {
    unsetenv("BLINDFUSE_FAKE_CUDA_FAULTS");
    unsetenv("BLINDFUSE_FAKE_CUDA_FAULTS_LATER");
    unsetenv("BLINDFUSE_GPU_BATCH_SECONDS_MAX");
    unsetenv("STATE_DIRECTORY");
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

  // A query of zeros by a client that does not ask again: its status, 0 if the connection was cut.
  static int ask(RunningServer& server) {
    const std::string log = server.program().err();
    const std::string before = "a query has ";
    const std::string query(std::stoul(log.substr(log.find(before) + before.size())), '\0');
    const auto ask = [&](const std::string& request) {
      return server_testing::LoopbackClient(server.url()).ask(request);
    };
    const std::string epoch =
        nlohmann::json::parse(ask(server_testing::get_request("/v1/database")).body).at("epoch");
    return ask(server_testing::post_request("/v1/epochs/" + epoch + "/queries",
                                            "application/octet-stream", query))
        .status;
  }
  static std::string metrics(const RunningServer& server) {
    return server_testing::LoopbackClient(server.admin_url())
        .ask(server_testing::get_request("/metrics"))
        .body;
  }
  // That the process has ended because of its GPU, with one line that says so, and has left its
  // file. Returns the line.
  std::string expect_ended(RunningServer& server, const std::string& what) {
    EXPECT_EQ(server.program().wait(), 1);
    EXPECT_FALSE(std::filesystem::exists(server.ready_file()));
    return expect_fault(server.program().err(), what);
  }
  std::string expect_fault(const std::string& log, const std::string& what) {
    const std::regex errors("(^|\\n)\\S+ error [^\\n]*");
    std::smatch line;
    EXPECT_TRUE(std::regex_search(log, line, errors)) << log;
    EXPECT_EQ(std::distance(std::sregex_iterator(log.begin(), log.end(), errors), {}), 1) << log;
    const std::string text = line.empty() ? "" : line.str();
    EXPECT_TRUE(contains(text, what)) << log;
    EXPECT_TRUE(contains(text, "emulator, compute capability 9.0")) << text;
    EXPECT_TRUE(contains(text, "--engine auto uses the processor until " + fault_file())) << text;
    const std::string left = read_whole(fault_file());
    EXPECT_TRUE(contains(left, what)) << left;
    EXPECT_TRUE(contains(left, "emulator, compute capability 9.0")) << left;
    return text;
  }
  std::string fault_file() const { return folder_ / "state/gpu-fault"; }

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
TEST_F(EmulatedCudaServe, AnswersWithoutAKernelThatFailsTheSelfTest) {
  const auto server = serve("auto", "spoil=scan_wgmma<64>");
  ASSERT_NE(server->url(), "") << server->program().err();
  EXPECT_EQ(get(*server, 5).status, 0);
  EXPECT_EQ(server->stop(), 0);
  const std::string log = server->program().err();
  EXPECT_TRUE(contains(log,
                       "kernels of the GPU are not used, since they failed the self-test: "
                       "wgmma, 16 queries: wrong"))
      << log;
  EXPECT_TRUE(contains(log, "engine cuda")) << log;
}

TEST_F(EmulatedCudaServe, LeavesAGpuThatFailsTheSelfTestToTheProcessor) {
  constexpr const char* kAllWrong =
      "spoil=scan_dp4a,spoil=scan_mma,spoil=scan_wgmma,spoil=scan_wgmma_tma";
  const auto server = serve("auto", kAllWrong);
  ASSERT_NE(server->url(), "") << server->program().err();
  EXPECT_EQ(get(*server, 1).out, "value 0\n");
  EXPECT_TRUE(contains(metrics(*server), "blindfuse_gpu_set_aside 0\n"));
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
  EXPECT_FALSE(std::filesystem::exists(fault_file())) << "nothing was wrong while it ran";
}

// The whole life of a fault: one wrong word of one client's query, the processor from the next
// start on, and the GPU once its file is deleted.
TEST_F(EmulatedCudaServe, EndsAtAWrongProductAndServesFromTheProcessorNextTime) {
  {
    // The first launches multiply the matrix, and the server's own query.
    const auto server = serve("auto", "", "miscount=scan_dp4a<1>@2+");
    ASSERT_NE(server->url(), "") << server->program().err();
    EXPECT_EQ(ask(*server), 503);
    const std::string line = expect_ended(*server, "the kernel dp4a is wrong");
    EXPECT_TRUE(contains(line, "1 of 1 queries with the matrix of ")) << line;
  }
  {
    const auto server = serve("auto", "");
    ASSERT_NE(server->url(), "") << server->program().err();
    EXPECT_EQ(get(*server, 1).out, "value 0\n");
    EXPECT_TRUE(contains(metrics(*server), "blindfuse_gpu_set_aside 1\n"));
    EXPECT_EQ(server->stop(), 0);
    const std::string log = server->program().err();
    EXPECT_TRUE(contains(log, "the GPU is not used, and the processor computes, until " +
                                  fault_file() + " is deleted, which says: "))
        << log;
    EXPECT_TRUE(contains(log, "the kernel dp4a is wrong")) << log;
    EXPECT_TRUE(contains(log, "engine cpu:")) << log;
  }
  {
    const auto server = serve("cuda", "");
    ASSERT_NE(server->url(), "") << server->program().err();
    EXPECT_EQ(server->stop(), 0);
    EXPECT_TRUE(contains(server->program().err(), "engine cuda")) << server->program().err();
  }
  std::filesystem::remove(fault_file());
  const auto server = serve("auto", "");
  ASSERT_NE(server->url(), "") << server->program().err();
  EXPECT_TRUE(contains(metrics(*server), "blindfuse_gpu_set_aside 0\n"));
  EXPECT_EQ(server->stop(), 0);
  EXPECT_TRUE(contains(server->program().err(), "engine cuda")) << server->program().err();
}

// Products with the matrix, the server's own first queries, and whatever does not return.
TEST_F(EmulatedCudaServe, EndsAtAFaultBeforeItServes) {
  const std::pair<const char*, const char*> faults[] = {
      {"spoil=scan_mma", "the kernel mma is wrong"},
      {"alter=cudaMemcpy2DAsync@0", "is not what was sent to the device's memory"},
      {"skip=round_products", "the kernels of rounding are wrong"},
      {"fault=round_products", "cudaErrorIllegalAddress"},
      {"hang=scan_mma", "the device hangs: "},
      {"freeze=cudaMemcpy2DAsync", "the device hangs: "},
      {"freeze=cudaMemGetInfo", "the device hangs: "},
      {"hang=round_products", "the device hangs: "},
  };
  for (const auto& [fault, what] : faults) {
    SCOPED_TRACE(fault);
    std::filesystem::remove(fault_file());
    const bool hangs = what == std::string("the device hangs: ");
    const auto server = serve("auto", "", fault, {"--gpu-batch-seconds-max", hangs ? "1" : "600"});
    EXPECT_EQ(server->url(), "");
    expect_ended(*server, what);
  }
}

// The client gets status 503, and the process ends by itself. Of a device that is lost memory is
// not freed, which does not return any more, as with a GPU that has fallen off the bus.
TEST_F(EmulatedCudaServe, EndsWhenAKernelNeverDoesOrTheDeviceIsLost) {
  const std::pair<const char*, const char*> faults[] = {
      {"hang=scan_dp4a<1>@2+", "the device hangs: "},
      {"fault=scan_dp4a<1>@2,stall=cudaFree,stall=cudaFreeHost", "cudaErrorIllegalAddress"}};
  for (const auto& [fault, what] : faults) {
    SCOPED_TRACE(fault);
    const auto server = serve("cuda", "", fault, {"--gpu-batch-seconds-max", "5"});
    ASSERT_NE(server->url(), "") << server->program().err();
    EXPECT_EQ(ask(*server), 503);
    expect_ended(*server, what);
  }
}

// A pipe that is full, and has no reader; and a client that sends no more.
TEST_F(EmulatedCudaServe, EndsWhereItsLogAndASocketHangToo) {
  const std::string log = folder_ / "log";
  ASSERT_EQ(mkfifo(log.c_str(), 0600), 0);
  const FileDescriptor pipe(open(log.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  ASSERT_TRUE(pipe.is_open());
  const auto server =
      serve("cuda", "", "hang=scan_dp4a<1>@2+", {"--gpu-batch-seconds-max", "1"}, log);
  ASSERT_NE(server->url(), "");
  while (write(pipe.get(), "x", 1) == 1) {
  }
  server_testing::LoopbackClient silent(server->url());
  silent.send("POST /v1/epochs/");
  const auto got = get(*server, 1, {"--timeout", "60"});
  EXPECT_NE(got.status, 0);
  EXPECT_EQ(server->program().wait(), 1);
  EXPECT_TRUE(contains(read_whole(fault_file()), "the device hangs: "));
}

TEST_F(EmulatedCudaServe, EndsWhenToldToWhileAKernelHangs) {
  const auto server = serve("cuda", "", "hang=scan_dp4a<1>@2+", {"--gpu-batch-seconds-max", "5"});
  ASSERT_NE(server->url(), "") << server->program().err();
  const RunningProgram client(folder_, {kBlindfuseClient, "get", server->url(), "key0"});
  // Until its query is in the engine.
  while (!contains(metrics(*server), "blindfuse_queue_wait_seconds_count 1")) {
  }
  EXPECT_EQ(server->stop(), 1);
  expect_ended(*server, "the device hangs: ");
}

// While clients are answered: the epoch that is served lies on the same device.
TEST_F(EmulatedCudaServe, EndsWhenTheDeviceFailsWhileANewEpochLoads) {
  const std::pair<const char*, const char*> faults[] = {
      // The first epoch has the launches before: with the matrix, and in the server's own queries.
      {"hang=scan_mma<16>@2+", "the device hangs: "},
      {"miscount=scan_mma<16>@2+", "the kernel mma is wrong"},
      // Each engine asks how much memory there is for its matrix, for the check of its kernels, and
      // for its pipeline. To give something back would not return.
      {"lose=cudaMemGetInfo@3:719,stall=cudaFree,stall=cudaFreeHost,stall=cudaStreamDestroy,"
       "stall=cudaStreamSynchronize,stall=cudaEventDestroy",
       "cudaErrorLaunchFailure"}};
  for (const auto& [fault, what] : faults) {
    SCOPED_TRACE(fault);
    const auto server =
        serve("cuda", "", fault, {"--gpu-batch-seconds-max", "2", "--watch-seconds", "1"});
    ASSERT_NE(server->url(), "") << server->program().err();
    write_file(folder_ / "input.tsv", "key0\tvalue 0\nother\t" + std::string(what) + "\n");
    const auto built = build({"--engine", "cpu", "--allow-shrink"}, "");
    ASSERT_EQ(built.status, 0) << built.err;
    expect_ended(*server, what);
  }
}

// Status 1 is tried again by its unit, status 2 is not.
TEST_F(EmulatedCudaServe, TellsWhatMayPassFromAWrongCommandLine) {
  struct Case {
    const char* engine;
    const char* faults;
    int status;
    const char* word;
  };
  for (const Case& c : {Case{"cuda", "fail=cudaGetDeviceCount:802", 1, "nvidia-fabricmanager"},
                        {"cuda", "driver=11040", 1, "the NVIDIA driver is for CUDA 11.4"},
                        {"cuda@3", "", 2, "there is no CUDA device 3"},
                        {"cuda:nothing", "", 2, "there is no CUDA kernel"},
                        {"cuda", "capability=7", 2, "compute capability 8.0 or later"}}) {
    const auto server = serve(c.engine, c.faults);
    EXPECT_EQ(server->program().wait(), c.status) << c.engine << " " << c.faults;
    EXPECT_TRUE(contains(server->program().err(), c.word)) << server->program().err();
  }
  EXPECT_FALSE(std::filesystem::exists(fault_file()));
}

TEST_F(EmulatedCudaServe, VerifiesADatabase) {
  const std::vector<std::string> verify = {kEmulated,  "inspect",  database_,
                                           "--verify", "--engine", "cuda"};
  set_faults("", nullptr);
  const auto verified = run(folder_, verify);
  EXPECT_EQ(verified.status, 0) << verified.err;
  EXPECT_TRUE(contains(verified.out, "found through the real client")) << verified.out;
  // In a batch of the client's: the matrix had the first launch, and the server's own query one.
  const std::pair<const char*, const char*> faults[] = {
      {"spoil=scan_mma", "the kernel mma is wrong"},
      {"miscount=scan_dp4a<1>@2+", "the kernel dp4a is wrong"},
      {"hang=scan_dp4a<1>@2+", "the device hangs: "}};
  for (const auto& [fault, what] : faults) {
    set_faults("", fault);
    std::vector<std::string> soon = verify;
    soon.insert(soon.end(), {"--gpu-batch-seconds-max", "2"});
    const auto wrong = run(folder_, soon);
    EXPECT_EQ(wrong.status, 1) << wrong.out;
    expect_fault(wrong.err, what);
  }
}

// With the file left, the next build takes the processor.
TEST_F(EmulatedCudaServe, BuildsNothingWithAGpuThatIsWrongOrHangs) {
  const std::string manifest = read_whole(database_ + "/manifest.json");
  const std::pair<const char*, const char*> faults[] = {
      {"spoil=scan_mma", "columns of the hint are wrong"}, {"hang=scan_mma", "the device hangs: "}};
  for (const auto& [fault, what] : faults) {
    std::filesystem::remove(fault_file());
    const auto built =
        build({"--engine", "auto", "--fresh", "--gpu-batch-seconds-max", "2"}, "", fault);
    EXPECT_EQ(built.status, 1);
    expect_fault(built.err, what);
    EXPECT_EQ(read_whole(database_ + "/manifest.json"), manifest);
  }
  const auto on_cpu = build({"--engine", "auto", "--fresh"}, "", "spoil=scan_mma");
  EXPECT_EQ(on_cpu.status, 0) << on_cpu.err;
  EXPECT_TRUE(contains(on_cpu.err, "the GPU is not used")) << on_cpu.err;
  const auto right = build({"--engine", "cuda", "--fresh"}, "");
  EXPECT_EQ(right.status, 0) << right.err;
  const auto server = serve("cpu", "");
  EXPECT_EQ(get(*server, 1).out, "value 0\n");
}

}  // namespace
}  // namespace blindfuse::program_testing
