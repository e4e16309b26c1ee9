// Every CUDA kernel: no barrier, fence, wait or commit that it can do without, except those that
// are listed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>

#include "tests/cuda/kernel_support.h"
#include "tests/paths.h"

namespace blindfuse::emulator {

std::vector<Subject>& subjects() {
  static std::vector<Subject> all;
  return all;
}

namespace {

// Returns "scan_mma" for "scan_mma<16>".
std::string kernel_of(const Subject& subject) {
  return subject.name.substr(0, subject.name.find('<'));
}

// How many calls of the same kind, in the same function, stand before it in the file.
int number_of(const Call& call, const Report& report) {
  int number = 1;
  for (const auto& [other, count] : report.calls) {
    number += other.file == call.file && other.function == call.function &&
              other.step == call.step && other.line < call.line;
  }
  return number;
}

// What shows that the call is needed; "" if nothing does.
std::string why_needed(const Subject& subject, const Call& call) {
  Report report;
  try {
    return subject.run({.omitted = call}, report) ? "" : "wrong result";
  } catch (const KernelFault& fault) {
    return name_of(fault.fault());
  }
}

void check(const Subject& subject) {
  SCOPED_TRACE(subject.name);
  Report report;
  EXPECT_TRUE(subject.run({}, report));
  std::vector<bool> was_seen(subject.redundant.size());
  for (const auto& [call, count] : report.calls) {
    const int number = number_of(call, report);
    const auto known = std::ranges::find_if(subject.redundant, [&](const Redundant& r) {
      return r.file == call.file && r.function == call.function && r.step == call.step &&
             r.nth == number;
    });
    const bool is_listed = known != subject.redundant.end();
    if (is_listed) was_seen[static_cast<size_t>(known - subject.redundant.begin())] = true;
    const std::string why = why_needed(subject, call);
    std::printf("%-20s %s:%u %s #%d: %s\n", subject.name.c_str(), call.file.c_str(), call.line,
                name_of(call.step).c_str(), number, why.empty() ? "not needed" : why.c_str());
    EXPECT_EQ(why.empty(), is_listed)
        << call.file << ':' << call.line << ' ' << name_of(call.step) << ": "
        << (is_listed ? "listed as redundant, and it is missed"
                      : "nothing misses it: take it out, or list it with the reason");
  }
  EXPECT_EQ(std::ranges::count(was_seen, false), 0) << "listed, but the kernel has no such call";
}

class KernelMutations : public testing::TestWithParam<std::string> {};

TEST_P(KernelMutations, AreFound) {
  for (const Subject& subject : subjects()) {
    if (kernel_of(subject) == GetParam()) check(subject);
  }
}

// Reads the names of all kernels from the source.
std::set<std::string> kernels_in_source() {
  std::set<std::string> names;
  const std::regex kernel(R"(__global__\s+void\s+(?:__launch_bounds__\([^{;]*\)\s*)?(\w+)\()");
  for (const char* folder : {"cuda/scan/kernels", "cuda/packing/kernels"}) {
    for (const auto& entry :
         std::filesystem::directory_iterator(paths::source_folder() + '/' + folder)) {
      std::ifstream file(entry.path());
      const std::string text(std::istreambuf_iterator<char>(file), {});
      for (std::sregex_iterator at(text.begin(), text.end(), kernel), end; at != end; ++at) {
        names.insert((*at)[1]);
      }
    }
  }
  return names;
}
INSTANTIATE_TEST_SUITE_P(Kernels, KernelMutations, testing::ValuesIn(kernels_in_source()),
                         [](const auto& of) { return of.param; });

TEST(KernelMutations, NoKernelIsLeftOut) {
  std::set<std::string> looked_at;
  for (const Subject& subject : subjects()) looked_at.insert(kernel_of(subject));
  EXPECT_EQ(looked_at, kernels_in_source());
}

}  // namespace
}  // namespace blindfuse::emulator
