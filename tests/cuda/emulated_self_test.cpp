// `blindfuse self-test` on an emulated GPU that is told to fail: what is wrong, crashes or hangs is
// found, named, and costs no other kernel.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

#include "host/system/child_process.h"
#include "tests/paths.h"

namespace blindfuse {
namespace {

using Outcomes = std::map<std::string, std::string>;  // of kernels, the worst

Outcomes all_kernels(const std::string& outcome) {
  return {{"dp4a", outcome}, {"mma", outcome}, {"wgmma", outcome}, {"wgmma-tma", outcome}};
}

class EmulatedCudaSelfTest : public ::testing::Test {
 protected:
  void TearDown() override { unsetenv("BLINDFUSE_FAKE_CUDA_FAULTS"); }

  // All that it says; packing takes an emulator too long.
  std::string run(const char* faults, std::vector<std::string> options = {}) {
    setenv("BLINDFUSE_FAKE_CUDA_FAULTS", faults, 1);
    std::vector<std::string> arguments = {
        "-c",        "exec 2>&1; exec \"$@\"",
        "sh",        paths::program_folder() + "/blindfuse-emulated",
        "self-test", "--without",
        "packing",   "--without",
        "tables"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    ChildProcess program("/bin/sh", arguments);
    std::string all;
    for (;;) {
      const auto line = program.read_line(std::chrono::minutes(5));
      if (line.said != ChildProcess::Said::kLine) break;
      all += line.text + "\n";
    }
    end_ = program.end(std::chrono::minutes(1));
    return all;
  }

  Outcomes outcomes(const char* faults, const std::vector<std::string>& options = {}) {
    std::vector<std::string> all = {"--json"};
    all.insert(all.end(), options.begin(), options.end());
    const auto result = nlohmann::json::parse(run(faults, all));
    Outcomes outcomes;
    for (const auto& check : result.at("checks")) {
      std::string& worst = outcomes[check.at("kernel")];
      if (worst.empty() || worst == "passed") worst = check.at("outcome");
    }
    EXPECT_EQ(result.at("passed"), end_.empty());
    return outcomes;
  }

  std::string end_;  // how the program ended
};

// Whichever of its tiles it is. With the first one, the other kernels run, and pass.
TEST_F(EmulatedCudaSelfTest, FindsEachTileThatIsWrong) {
  const std::map<std::string, std::vector<int>> tiles = {{"dp4a", {1, 2, 3}},
                                                         {"mma", {16, 32, 64, 128}},
                                                         {"wgmma", {32, 64, 128, 256}},
                                                         {"wgmma-tma", {32, 64, 128, 256}}};
  for (const auto& [kernel, sizes] : tiles) {
    std::vector<std::string> without_others;
    for (const auto& [other, unused] : tiles) {
      if (other != kernel) without_others.insert(without_others.end(), {"--without", other});
    }
    std::string name = kernel;
    std::ranges::replace(name, '-', '_');
    for (const int size : sizes) {
      const std::string tile = name + "<" + std::to_string(size) + ">";
      const bool is_first = size == sizes.front();
      Outcomes expected = is_first ? all_kernels("passed") : Outcomes{};
      expected[kernel] = "wrong";
      EXPECT_EQ(outcomes(("spoil=scan_" + tile).c_str(),
                         is_first ? std::vector<std::string>{} : without_others),
                expected)
          << tile;
      EXPECT_EQ(end_, "exit status 1");
    }
  }
}

TEST_F(EmulatedCudaSelfTest, FindsWhatIsWrongWithEveryKernel) {
  for (const char* fault : {"spoil=cut_bit_sequences", "spoil=round_products"}) {
    EXPECT_EQ(outcomes(fault), all_kernels("wrong")) << fault;
  }
}

// A context that is lost, a process that is gone, one that does not come back: the next one goes on
// with the other kernels.
TEST_F(EmulatedCudaSelfTest, OutlivesWhatEndsAProcess) {
  EXPECT_EQ(
      outcomes("fault=scan_dp4a<3>,die=scan_mma<32>,hang=scan_wgmma<64>",
               {"--seconds-per-check", "5"}),
      (Outcomes{
          {"dp4a", "failed"}, {"mma", "crashed"}, {"wgmma", "hung"}, {"wgmma-tma", "passed"}}));
}

// Code that does not come to the device, as where the driver compiles it, has a time of its own.
TEST_F(EmulatedCudaSelfTest, GivesTheCodeOfKernelsATimeOfItsOwn) {
  const std::string text = run("freeze=cudaFuncGetAttributes",
                               {"--without", "mma", "--without", "wgmma", "--without", "wgmma-tma",
                                "--seconds-per-check", "600", "--seconds-to-start", "1"});
  EXPECT_NE(text.find("hung: its code was not loaded in 1000 ms"), std::string::npos) << text;
  EXPECT_EQ(end_, "exit status 1");
}

// Libraries print what they like: before main(), and in any call.
TEST_F(EmulatedCudaSelfTest, ReadsNoLinesThatAreNotItsOwn) {
  setenv(
      "BLINDFUSE_FAKE_CUDA_GREETING",
      "devices many\nload\nbegin x dp4a 1 query\nbegin 0 dp4a 1 query\npassed\nabsent from here\n"
      "none of these\nend",
      1);
  const std::string text =
      run("print=cudaGetDeviceCount,print=cudaFuncGetAttributes@30", {"--without", "wgmma-tma"});
  unsetenv("BLINDFUSE_FAKE_CUDA_GREETING");
  EXPECT_NE(text.find("failed by nobody"), std::string::npos) << "on standard error";
  EXPECT_NE(text.find("\nall 17 checks passed\n"), std::string::npos) << text;
}

TEST_F(EmulatedCudaSelfTest, SaysWhyItDoesNotBegin) {
  EXPECT_NE(run("devices=0").find("the engine cuda cannot run: cudaErrorNoDevice, no CUDA device"),
            std::string::npos);
  EXPECT_EQ(end_, "exit status 1");
  EXPECT_NE(run("die=ask_for_wgmma").find("ended before its first check: signal 9 (Killed)"),
            std::string::npos);
  EXPECT_NE(run("hang=ask_for_wgmma", {"--seconds-to-start", "1"})
                .find("the self-test of CUDA device 0 hangs before its first check"),
            std::string::npos);
  EXPECT_EQ(run("", {"--engine", "cpu"}),
            "blindfuse: --engine cpu has no self-test; it is cuda, or cuda@DEVICE\n");
  EXPECT_EQ(end_, "exit status 2");
}

TEST_F(EmulatedCudaSelfTest, ChecksTheDeviceThatIsNamed) {
  EXPECT_EQ(outcomes("devices=2,only=0,hang=ask_for_wgmma", {"--engine", "cuda@1"}),
            all_kernels("passed"));
  EXPECT_EQ(end_, "");
  EXPECT_NE(run("devices=2", {"--engine", "cuda@2"}).find("there is no CUDA device 2"),
            std::string::npos);
}

TEST_F(EmulatedCudaSelfTest, PrintsATable) {
  const std::string text =
      run("spoil=scan_mma<64>", {"--without", "wgmma", "--without", "wgmma-tma"});
  EXPECT_NE(text.find("emulator, compute capability 9.0"), std::string::npos) << text;
  // Every query lacks the rows of the block that was left out.
  EXPECT_TRUE(std::regex_search(
      text,
      std::regex("\nmma       16 queries            wrong: 16 of 16 responses differ from the "
                 "CPU's, in [0-9]+ of 2400 words, first word [0-9]+ of number 0: [0-9]+ "
                 "instead of [0-9]+\n")))
      << text;
  EXPECT_NE(
      text.find(
          "\n1 of 8 checks did not pass: use --engine cuda:KERNEL with another kernel, or cpu\n"),
      std::string::npos)
      << text;
}

// The block that is left out is then the only one.
TEST_F(EmulatedCudaSelfTest, RunsWithAsManyBlocksAsTheEnvironmentSays) {
  setenv("BLINDFUSE_CUDA_WALKERS_MAX", "1", 1);
  const std::string text = run(
      "spoil=scan_mma<64>", {"--without", "dp4a", "--without", "wgmma", "--without", "wgmma-tma"});
  unsetenv("BLINDFUSE_CUDA_WALKERS_MAX");
  EXPECT_NE(text.find("in 2400 of 2400 words"), std::string::npos) << text;
}

// A copy whose first bit is altered, which is that of the responses: their first word alone.
TEST_F(EmulatedCudaSelfTest, CountsTheWordsThatDiffer) {
  const std::regex pattern(
      "\nmma       8 queries             wrong: 1 of 8 responses differ from the CPU's, in 1 of "
      "1200 words, first word 0 of number 0: ([0-9]+) instead of ([0-9]+)\n");
  constexpr int kCopiesMax = 30;  // of the first two checks, at most
  for (int copy = 0; copy < kCopiesMax; ++copy) {
    const std::string text = run(("alter=copy@" + std::to_string(copy)).c_str(),
                                 {"--without", "dp4a", "--without", "wgmma"});
    std::smatch words;
    if (!std::regex_search(text, words, pattern)) continue;
    EXPECT_EQ(std::stoul(words[1]), std::stoul(words[2]) ^ 1) << text;
    return;
  }
  FAIL() << "no copy is that of the second check's responses";
}

}  // namespace
}  // namespace blindfuse
