// `blindfuse serve` on an emulated GPU that fails: how it ends, and what it says.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "host/system/child_process.h"
#include "tests/paths.h"

namespace blindfuse {
namespace {

class EmulatedCudaFailures : public ::testing::Test {
 protected:
  static constexpr std::chrono::minutes kPatience{2};

  EmulatedCudaFailures() {
    std::string name = std::filesystem::temp_directory_path() / "blindfuse-failures-XXXXXX";
    folder_ = mkdtemp(name.data());
    // An emulator takes the time that it takes.
    setenv("BLINDFUSE_GPU_BATCH_SECONDS_MAX", "600", 1);
    build("one");
  }
  ~EmulatedCudaFailures() override {
    unsetenv("BLINDFUSE_FAKE_CUDA_FAULTS");
    unsetenv("BLINDFUSE_FAKE_CUDA_FAULTS_LATER");
    unsetenv("BLINDFUSE_GPU_BATCH_SECONDS_MAX");
    std::filesystem::remove_all(folder_);
  }

  // Standard error, too, is read.
  static std::unique_ptr<ChildProcess> run(const std::string& program,
                                           const std::vector<std::string>& arguments) {
    std::vector<std::string> all = {"-c", "exec 2>&1; exec \"$@\"", "sh",
                                    paths::program_folder() + "/" + program};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return std::make_unique<ChildProcess>("/bin/sh", all);
  }
  // The next epoch, without a GPU.
  void build(const std::string& value) const {
    std::ofstream(folder_ / "pairs.tsv") << "key\t" << value << "\nother\tvalue\n";
    const auto builder =
        run("blindfuse-emulated", {"build", folder_ / "pairs.tsv", "--output", database(),
                                   "--engine", "cpu", "--mode", "hint"});
    std::string said;
    read(*builder, "nothing that it says", said);
    ASSERT_EQ(builder->end(kPatience), "") << said;
  }
  // later: instead of the faults, for the server itself, after its self-test.
  void serve(const std::string& faults, const std::string& engine = "cuda",
             const char* later = nullptr) {
    setenv("BLINDFUSE_FAKE_CUDA_FAULTS", faults.c_str(), 1);
    if (later != nullptr) setenv("BLINDFUSE_FAKE_CUDA_FAULTS_LATER", later, 1);
    server_ = run("blindfuse-emulated", {"serve", database(), "--engine", engine, "--listen",
                                         "127.0.0.1:0", "--watch-seconds", "1"});
    unsetenv("BLINDFUSE_FAKE_CUDA_FAULTS");
    unsetenv("BLINDFUSE_FAKE_CUDA_FAULTS_LATER");
  }
  // Up to a line that has this; false if there was none.
  static bool read(ChildProcess& process, const std::string& what, std::string& said) {
    for (;;) {
      const auto line = process.read_line(kPatience);
      if (line.said != ChildProcess::Said::kLine) return false;
      said += line.text + "\n";
      if (line.text.find(what) != std::string::npos) return true;
    }
  }
  // How the server ended.
  std::string end() {
    read(*server_, "nothing that it says", said_);
    return server_->end(std::chrono::seconds(30));
  }
  bool has_said(const std::string& what) const { return said_.find(what) != std::string::npos; }
  std::string url() {
    const std::string listening = "listening on ";
    if (!read(*server_, listening, said_)) return "";
    const size_t at = said_.rfind(listening) + listening.size();
    return said_.substr(at, said_.find('\n', at) - at);
  }
  std::string database() const { return folder_ / "database"; }

  std::filesystem::path folder_;
  std::unique_ptr<ChildProcess> server_;
  std::string said_;  // by the server
};

// Status 1 is tried again by its unit, status 2 is not.
TEST_F(EmulatedCudaFailures, WhatMayPassIsTriedAgain) {
  serve("fail=cudaGetDeviceCount:802");
  EXPECT_EQ(end(), "exit status 1") << said_;
  EXPECT_TRUE(has_said("nvidia-fabricmanager")) << said_;
  serve("driver=11040");
  EXPECT_EQ(end(), "exit status 1") << said_;
  EXPECT_TRUE(has_said("the NVIDIA driver is for CUDA 11.4")) << said_;
}

TEST_F(EmulatedCudaFailures, WhatTheCommandLineHasWrongIsNot) {
  serve("", "cuda@3");
  EXPECT_EQ(end(), "exit status 2") << said_;
  serve("", "cuda:nothing");
  EXPECT_EQ(end(), "exit status 2") << said_;
  serve("capability=7");
  EXPECT_EQ(end(), "exit status 2") << said_;
}

// The epoch that is served lies on the same device.
TEST_F(EmulatedCudaFailures, ADeviceThatIsLostWhileAnEpochLoadsEndsTheService) {
  // Each engine asks how much memory there is for its matrix, for the check of its kernels, and for
  // its pipeline.
  // To give something back would not return.
  serve("", "cuda",
        "lose=cudaMemGetInfo@3:719,stall=cudaFree,stall=cudaFreeHost,stall=cudaStreamDestroy,"
        "stall=cudaStreamSynchronize,stall=cudaEventDestroy");
  ASSERT_NE(url(), "") << said_;
  build("two");
  EXPECT_EQ(end(), "exit status 1") << said_;
  EXPECT_TRUE(has_said("the engine's device failed while the new epoch was loaded: ")) << said_;
  EXPECT_TRUE(has_said("cudaErrorLaunchFailure")) << said_;
  EXPECT_FALSE(has_said("the one before goes on")) << said_;
}

// Freeing its memory does not return any more, as with a GPU that has fallen off the bus.
TEST_F(EmulatedCudaFailures, ALostDeviceIsLeftAsItIs) {
  // The first launches multiply the matrix, and the canary.
  serve("", "cuda", "fault=scan_dp4a<1>@2,stall=cudaFree,stall=cudaFreeHost");
  const std::string url = this->url();
  ASSERT_NE(url, "") << said_;
  const auto client = run("blindfuse-client", {"get", url, "--cache", folder_ / "cache", "key"});
  EXPECT_EQ(end(), "exit status 1") << said_;
  EXPECT_TRUE(has_said("the engine failed in a batch of 1: ")) << said_;
  EXPECT_TRUE(has_said("scan_dp4a<1>")) << "what was running: " << said_;
}

}  // namespace
}  // namespace blindfuse
