#include "host/engines/self_test.h"

#include <sys/prctl.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <optional>
#include <string_view>
#include <utility>

#include "host/engines/kernel_checks.h"
#include "host/system/child_process.h"
#include "src/base/errors.h"

namespace blindfuse {
namespace {

using Outcome = SelfTestResult::Outcome;
using Said = ChildProcess::Said;

// A line of the worker's: a word, and the rest.
//
//   devices NUMBER         of the machine, where they can be counted
//   device TEXT            what it is; or
//   none TEXT              why it cannot be used; or
//   absent TEXT            that there is none
//   begin NUMBER KERNEL NAME
//   passed | wrong TEXT | failed TEXT
//   end
void say(std::string_view word, std::string text = "") {
  std::ranges::replace(text, '\n', ' ');
  constexpr size_t kTextMax = 2'000;
  text.resize(std::min(text.size(), kTextMax));
  std::printf("%s\n", (std::string(word) + (text.empty() ? "" : " " + text)).c_str());
  std::fflush(stdout);
}

std::pair<std::string, std::string> split(const std::string& text) {
  const size_t space = text.find(' ');
  if (space == std::string::npos) return {text, ""};
  return {text.substr(0, space), text.substr(space + 1)};
}

bool lists(const std::vector<std::string>& kernels, const std::string& kernel) {
  return std::ranges::find(kernels, kernel) != kernels.end();
}

// One worker after another, until all is said.
class SelfTest {
 public:
  explicit SelfTest(const SelfTestOptions& options)
      : options_(options), without_(options.without) {}

  SelfTestResult run() {
    while (!is_over_) run_worker();
    return std::move(result_);
  }

 private:
  void run_worker() {
    ChildProcess worker(own_program(), arguments());
    std::optional<SelfTestResult::Check> begun;
    for (;;) {
      const auto line = worker.read_line(options_.patience);
      if (line.said != Said::kLine) {
        const bool hangs = line.said == Said::kNothing;
        const std::string end = worker.end(std::chrono::milliseconds(hangs ? 0 : 1'000));
        if (!begun) fail_to_begin(hangs, end);
        finish(*begun, hangs ? Outcome::kHung : Outcome::kCrashed,
               hangs ? "it did not end in " + std::to_string(options_.patience.count()) + " ms"
                     : "the process ended: " + (end.empty() ? "exit status 0" : end));
        return;
      }
      const auto [word, text] = split(line.text);
      if (word == "device") {
        result_.device = text;
      } else if (word == "devices") {
        result_.device_count = std::stoi(text);
      } else if (word == "none" || word == "absent") {
        result_.why_no_device = text;
        result_.is_absent = word == "absent";
        is_over_ = true;
        return;
      } else if (word == "begin") {
        const auto [number, what] = split(text);
        const auto [kernel, name] = split(what);
        next_ = std::stoull(number) + 1;
        begun = SelfTestResult::Check{kernel, name, Outcome::kPassed, ""};
      } else if (word == "end") {
        is_over_ = true;
        return;
      } else if (begun) {
        const Outcome outcome = word == "passed"  ? Outcome::kPassed
                                : word == "wrong" ? Outcome::kWrong
                                                  : Outcome::kFailed;
        finish(*std::exchange(begun, std::nullopt), outcome, text);
        // What follows an error in the same process proves nothing of other kernels.
        if (outcome != Outcome::kPassed) return;
      }
    }
  }

  std::vector<std::string> arguments() const {
    std::vector<std::string> all = {"self-test", "--worker",
                                    "--engine",  "cuda@" + std::to_string(options_.device),
                                    "--first",   std::to_string(next_)};
    for (const std::string& kernel : without_) all.insert(all.end(), {"--without", kernel});
    return all;
  }

  void finish(SelfTestResult::Check check, Outcome outcome, std::string why) {
    check.outcome = outcome;
    check.why = std::move(why);
    if (outcome != Outcome::kPassed) without_.push_back(check.kernel);
    result_.checks.push_back(std::move(check));
  }

  // Neither a device that can be used nor why not: the driver crashes or hangs.
  [[noreturn]] void fail_to_begin(bool hangs, const std::string& end) const {
    if (!result_.checks.empty()) {
      throw ResourceError("the self-test of " + result_.device +
                          " does not go on: " + (hangs ? "it hangs" : "the process ended: " + end));
    }
    throw ResourceError(
        "the self-test of CUDA device " + std::to_string(options_.device) +
        (hangs ? " hangs before its first check" : " ended before its first check: " + end) +
        "; nvidia-smi may say more, and --engine cpu does without the device");
  }

  const SelfTestOptions& options_;
  std::vector<std::string> without_;
  SelfTestResult result_;
  size_t next_ = 0;
  bool is_over_ = false;
};

}  // namespace

bool SelfTestResult::passed() const {
  return why_no_device.empty() && std::ranges::all_of(checks, [](const Check& check) {
           return check.outcome == Outcome::kPassed;
         });
}

std::string_view name_of(SelfTestResult::Outcome outcome) {
  switch (outcome) {
    case Outcome::kPassed:
      return "passed";
    case Outcome::kWrong:
      return "wrong";
    case Outcome::kFailed:
      return "failed";
    case Outcome::kCrashed:
      return "crashed";
    case Outcome::kHung:
      return "hung";
  }
  return "";
}

SelfTestResult run_self_test(const SelfTestOptions& options) { return SelfTest(options).run(); }

void note(const SelfTestResult& result, KernelRecord& record) {
  for (const auto& check : result.checks) {
    if (check.outcome == Outcome::kPassed) {
      record.note_passed(check.kernel, CheckStage::kSelfTest);
    } else {
      record.note_failed(
          check.kernel, CheckStage::kSelfTest,
          check.name + ": " + std::string(name_of(check.outcome)) + ", " + check.why);
    }
  }
}

void run_self_test_worker(int device, size_t first, const std::vector<std::string>& without) {
  // No longer than who asked for it.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int count = device_count();
  say("devices", std::to_string(count));
  if (const std::string why_not = why_no_device(device); !why_not.empty()) {
    return say(is_device_absent(device) ? "absent" : "none", why_not);
  }
  say("device", device_description(device));
  const std::vector<KernelCheck> checks = kernel_checks(device);
  for (size_t i = first; i < checks.size(); ++i) {
    if (lists(without, checks[i].kernel)) continue;
    say("begin", std::to_string(i) + " " + checks[i].kernel + " " + checks[i].name);
    try {
      const std::string difference = checks[i].run();
      difference.empty() ? say("passed") : say("wrong", difference);
    } catch (const std::exception& error) {
      say("failed", error.what());
    }
  }
  say("end");
}

}  // namespace blindfuse
