#include "host/engines/self_test.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <exception>
#include <optional>
#include <string_view>
#include <utility>

#include "host/engines/kernel_checks.h"
#include "host/system/child_process.h"
#include "src/base/errors.h"
#include "src/system/file.h"

namespace blindfuse {
namespace {

using Outcome = SelfTestResult::Outcome;
using Said = ChildProcess::Said;

// A line of the worker's: what no library prints, a word, and the rest.
//
//   devices NUMBER         of the machine, where they can be counted
//   device TEXT            what it is; or
//   none TEXT              why it cannot be used; or
//   absent TEXT            that there is none
//   load NUMBER KERNEL NAME
//   begin NUMBER KERNEL NAME
//   passed | wrong TEXT | failed TEXT
//   end
//
// Any other line is not the worker's: a library may print what it likes before main().
constexpr std::string_view kLineMark = "blindfuse-self-test: ";

class Report {
 public:
  // Standard output becomes the report's alone.
  Report() : output_(dup(STDOUT_FILENO)) {
    if (!output_.is_open() || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
      throw ResourceError(std::string("the self-test cannot report: ") + std::strerror(errno));
    }
    write_all("\n");  // after what a library has not ended
  }

  void say(std::string_view word, std::string text = "") const {
    std::ranges::replace(text, '\n', ' ');
    constexpr size_t kTextMax = 2'000;
    text.resize(std::min(text.size(), kTextMax));
    write_all(std::string(kLineMark) + std::string(word) + (text.empty() ? "" : " " + text) + "\n");
  }

 private:
  void write_all(std::string line) const {
    while (!line.empty()) {
      const ssize_t written = write(output_.get(), line.data(), line.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return;  // its reader has gone
      line.erase(0, static_cast<size_t>(written));
    }
  }

  const FileDescriptor output_;
};

template <typename Number>
std::optional<Number> number_in(const std::string& text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<Outcome> outcome_of(const std::string& word) {
  if (word == "passed") return Outcome::kPassed;
  if (word == "wrong") return Outcome::kWrong;
  if (word == "failed") return Outcome::kFailed;
  return std::nullopt;
}

std::pair<std::string, std::string> split(const std::string& text) {
  const size_t space = text.find(' ');
  if (space == std::string::npos) return {text, ""};
  return {text.substr(0, space), text.substr(space + 1)};
}

bool lists(const std::vector<std::string>& kernels, const std::string& kernel) {
  return std::ranges::find(kernels, kernel) != kernels.end();
}

// Runs one worker after another, until every check has a result.
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
    // The driver, or code of kernels.
    bool is_starting = true;
    while (!is_over_) {
      const auto patience = is_starting ? options_.start_patience : options_.patience;
      const auto line = worker.read_line(patience);
      if (line.said != Said::kLine) {
        const bool hangs = line.said == Said::kNothing;
        const std::string end = worker.end(std::chrono::milliseconds(hangs ? 0 : 1'000));
        if (!begun) fail_to_begin(hangs, end);
        const char* what = is_starting ? "its code was not loaded in " : "it did not end in ";
        finish(*begun, hangs ? Outcome::kHung : Outcome::kCrashed,
               hangs ? what + std::to_string(patience.count()) + " ms"
                     : "the process ended: " + (end.empty() ? "exit status 0" : end));
        return;
      }
      if (!line.text.starts_with(kLineMark)) continue;
      const auto [word, text] = split(line.text.substr(kLineMark.size()));
      if (word == "load" || word == "begin") {
        const auto [number, what] = split(text);
        const auto [kernel, name] = split(what);
        const auto place = number_in<size_t>(number);
        if (!place) continue;
        next_ = *place + 1;
        begun = SelfTestResult::Check{kernel, name, Outcome::kPassed, ""};
        is_starting = word == "load";
      } else if (const auto outcome = outcome_of(word); outcome && begun) {
        is_starting = true;
        finish(*std::exchange(begun, std::nullopt), *outcome, text);
        // After an error, results of the same process prove nothing of other kernels.
        if (*outcome != Outcome::kPassed) return;
      } else {
        take(word, text);
      }
    }
  }

  // Takes a line about the device, or the last line.
  void take(const std::string& word, const std::string& text) {
    if (word == "device") {
      result_.device = text;
    } else if (word == "devices") {
      result_.device_count = number_in<int>(text).value_or(result_.device_count);
    } else if (word == "none" || word == "absent") {
      result_.why_no_device = text;
      result_.is_absent = word == "absent";
      is_over_ = true;
    } else if (word == "end") {
      is_over_ = true;
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

  // The worker named neither a device that can be used nor a reason: the driver crashes or hangs.
  [[noreturn]] void fail_to_begin(bool hangs, const std::string& end) const {
    if (!result_.checks.empty()) {
      throw SelfTestError("the self-test of " + result_.device + " does not go on: " +
                              (hangs ? "it hangs" : "the process ended: " + end),
                          result_.device_count);
    }
    throw SelfTestError(
        "the self-test of CUDA device " + std::to_string(options_.device) +
            (hangs ? " hangs before its first check" : " ended before its first check: " + end) +
            "; nvidia-smi may say more, and --engine cpu does without the device",
        result_.device_count);
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

void run_self_test_worker(int device, size_t first, const std::vector<std::string>& without) {
  // The worker ends no later than the process that asked for it.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const Report report;
  const int count = device_count();
  report.say("devices", std::to_string(count));
  if (const std::string why_not = why_no_device(device); !why_not.empty()) {
    return report.say(is_device_absent(device) ? "absent" : "none", why_not);
  }
  report.say("device", device_description(device));
  const std::vector<KernelCheck> checks = kernel_checks(device);
  for (size_t i = first; i < checks.size(); ++i) {
    if (lists(without, checks[i].kernel)) continue;
    const std::string check = std::to_string(i) + " " + checks[i].kernel + " " + checks[i].name;
    try {
      report.say("load", check);
      checks[i].load();
      report.say("begin", check);
      const std::string difference = checks[i].run();
      difference.empty() ? report.say("passed") : report.say("wrong", difference);
    } catch (const std::exception& error) {
      report.say("failed", error.what());
    }
  }
  report.say("end");
}

}  // namespace blindfuse
