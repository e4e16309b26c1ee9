#include "tests/cuda/fake_faults.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "cuda/device/device_loss.h"

namespace blindfuse::fake_cuda {
namespace {

// What faults happen to.
enum class Target { kLaunch, kCopy, kCall };

struct Fault {
  Target target;
  LaunchFault launch = LaunchFault::kNone;
  CopyFault copy = CopyFault::kNone;
  int error = 0;
  bool loses = false;
  bool stalls = false;
  bool freezes = false;
  bool prints = false;
  std::string name;
  uint64_t first = 0;
  uint64_t last = UINT64_MAX;
  uint64_t seen = 0;

  bool is_of(Target other, std::string_view other_name) const {
    if (target != other) return false;
    if (name == other_name || (target == Target::kCall && name == "any")) return true;
    if (target == Target::kCopy) return name == "copy";
    return target == Target::kLaunch && name == other_name.substr(0, other_name.find('<'));
  }
  bool happens() {
    const uint64_t number = seen++;
    return first <= number && number <= last;
  }
};

struct Faults {
  int device_count = 1;
  uint64_t device_bytes = uint64_t{4} << 30;
  int capability_major = 9;
  int driver_version = CUDART_VERSION;
  std::optional<int> only_device;
  uint64_t call_count = 0;
  std::string struck_call;
  uint64_t late_give_backs = 0;
  int lost = 0;
  std::vector<Fault> list;
};

[[noreturn]] void refuse(std::string_view text) {
  throw std::invalid_argument("no fault: \"" + std::string(text) + "\"");
}

uint64_t number_of(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) refuse(text);
  return number;
}

std::pair<std::string_view, std::string_view> split(std::string_view text, char separator) {
  const size_t at = text.find(separator);
  if (at == std::string_view::npos) return {text, {}};
  return {text.substr(0, at), text.substr(at + 1)};
}

Fault parse_fault(std::string_view text) {
  const auto [kind, what] = split(text, '=');
  Fault fault{};
  std::string_view place = what;
  if (kind == "fail" || kind == "lose") {
    const auto [call, error] = split(what, ':');
    fault.target = Target::kCall;
    fault.error = static_cast<int>(number_of(error));
    fault.loses = kind == "lose";
    place = call;
  } else if (kind == "stall" || kind == "freeze" || kind == "print") {
    fault.target = Target::kCall;
    fault.prints = kind == "print";
    fault.stalls = kind == "stall";
    fault.freezes = kind == "freeze";
  } else if (kind == "alter" || kind == "drop") {
    fault.target = Target::kCopy;
    fault.copy = kind == "alter" ? CopyFault::kAlter : CopyFault::kDrop;
  } else {
    fault.target = Target::kLaunch;
    const std::map<std::string_view, LaunchFault> kinds = {
        {"spoil", LaunchFault::kSpoil},       {"fault", LaunchFault::kFault},
        {"hang", LaunchFault::kHang},         {"skip", LaunchFault::kSkip},
        {"miscount", LaunchFault::kMiscount}, {"die", LaunchFault::kDie}};
    if (!kinds.contains(kind)) refuse(text);
    fault.launch = kinds.at(kind);
  }
  auto [name, number] = split(place, '@');
  if (name.empty()) refuse(text);
  fault.name = name;
  if (place.find('@') != std::string_view::npos) {
    const bool goes_on = number.ends_with('+');
    if (goes_on) number.remove_suffix(1);
    fault.first = number_of(number);
    if (!goes_on) fault.last = fault.first;
  }
  return fault;
}

Faults parse_faults(std::string_view text) {
  Faults faults;
  while (!text.empty()) {
    const auto [first, rest] = split(text, ',');
    const auto [kind, what] = split(first, '=');
    if (kind == "devices") {
      faults.device_count = static_cast<int>(number_of(what));
    } else if (kind == "memory") {
      faults.device_bytes = number_of(what);
    } else if (kind == "capability") {
      faults.capability_major = static_cast<int>(number_of(what));
    } else if (kind == "driver") {
      faults.driver_version = static_cast<int>(number_of(what));
    } else if (kind == "only") {
      faults.only_device = static_cast<int>(number_of(what));
    } else {
      faults.list.push_back(parse_fault(first));
    }
    text = rest;
  }
  return faults;
}

bool is_argument(std::string_view name) {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string argument;
  while (std::getline(file, argument, '\0')) {
    if (argument == name) return true;
  }
  return false;
}

// As libraries that are loaded with a program may do.
[[maybe_unused]] const bool has_greeted = [] {
  const char* greeting = std::getenv("BLINDFUSE_FAKE_CUDA_GREETING");
  if (greeting == nullptr || !is_argument("--worker")) return false;
  std::puts(greeting);
  std::fflush(stdout);
  return true;
}();

bool gives_back(std::string_view call) {
  constexpr std::string_view kCalls[] = {"cudaFree", "cudaFreeHost", "cudaStreamDestroy",
                                         "cudaEventDestroy", "cudaStreamSynchronize"};
  return std::ranges::count(kCalls, call) > 0;
}

class State {
 public:
  static State& get() {
    static State state;
    return state;
  }

  void set(Faults faults) {
    const std::lock_guard lock(mutex_);
    faults_ = std::move(faults);
    ++generation_;
    changed_.notify_all();
  }
  void hang() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this, before = generation_] { return generation_ != before; });
  }
  // The first fault that happens to this one, which counts for all.
  std::optional<Fault> next(Target target, std::string_view name) {
    const std::lock_guard lock(mutex_);
    if (faults_.only_device.value_or(current_device) != current_device) return std::nullopt;
    std::optional<Fault> found;
    for (Fault& fault : faults_.list) {
      if (fault.is_of(target, name) && fault.happens() && !found) found = fault;
    }
    return found;
  }
  std::optional<Fault> next_call(std::string_view name) {
    {
      const std::lock_guard lock(mutex_);
      ++faults_.call_count;
      if (faults_.lost != 0 && gives_back(name)) ++faults_.late_give_backs;
    }
    auto fault = next(Target::kCall, name);
    if (fault) {
      const std::lock_guard lock(mutex_);
      faults_.struck_call = name;
    }
    return fault;
  }
  template <typename Value>
  Value read(Value Faults::*member) {
    const std::lock_guard lock(mutex_);
    return faults_.*member;
  }
  void lose(int error) {
    const std::lock_guard lock(mutex_);
    if (faults_.lost == 0) faults_.lost = error;
  }

 private:
  State() {
    const char* faults = std::getenv("BLINDFUSE_FAKE_CUDA_FAULTS");
    const char* later = std::getenv("BLINDFUSE_FAKE_CUDA_FAULTS_LATER");
    if (later != nullptr && !is_self_test()) faults = later;
    if (faults != nullptr) faults_ = parse_faults(faults);
  }

  static bool is_self_test() { return is_argument("self-test"); }

  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t generation_ = 0;
  Faults faults_;
};

}  // namespace

thread_local int current_device = 0;

void set_faults(std::string_view faults) {
  State::get().set(parse_faults(faults));
  forget_lost_device();
  current_device = 0;  // as in a new process: a device may be gone
}

uint64_t call_count() { return State::get().read(&Faults::call_count); }
uint64_t late_give_back_count() { return State::get().read(&Faults::late_give_backs); }
std::string struck_call() { return State::get().read(&Faults::struck_call); }

LaunchFault next_launch(std::string_view kernel) {
  const auto fault = State::get().next(Target::kLaunch, kernel);
  return fault ? fault->launch : LaunchFault::kNone;
}

CopyFault next_copy(std::string_view call) {
  const auto fault = State::get().next(Target::kCopy, call);
  return fault ? fault->copy : CopyFault::kNone;
}

int next_call(std::string_view call) {
  const auto fault = State::get().next_call(call);
  if (fault && fault->prints) {
    std::printf("failed by nobody\npassed");
    std::fflush(stdout);
    return lost();
  }
  if (fault && (fault->freezes || (fault->stalls && lost() != 0))) hang();
  if (fault && fault->loses) lose(fault->error);
  if (const int error = lost(); error != 0) return error;
  return fault ? fault->error : 0;
}

int device_count() { return State::get().read(&Faults::device_count); }
uint64_t device_bytes() { return State::get().read(&Faults::device_bytes); }
int capability_major() { return State::get().read(&Faults::capability_major); }
int driver_version() { return State::get().read(&Faults::driver_version); }

void lose(int error) { State::get().lose(error); }

int lost() { return State::get().read(&Faults::lost); }

void hang() { State::get().hang(); }

}  // namespace blindfuse::fake_cuda
