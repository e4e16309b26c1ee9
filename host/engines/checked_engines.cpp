#include "host/engines/checked_engines.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "host/engines/engine_factory.h"
#include "host/engines/engine_name.h"
#include "host/engines/watched_engines.h"
#include "src/base/errors.h"

namespace blindfuse {
namespace {

using Check = SelfTestResult::Check;
using Outcome = SelfTestResult::Outcome;

// What the self-test checks in addition to the scan.
constexpr std::string_view kParts[] = {"packing", "tables"};

bool is_part(const std::string& kernel) { return std::ranges::count(kParts, kernel) > 0; }

bool lists(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::count(names, name) > 0;
}

bool passes(const SelfTestResult& result, std::string_view kernel) {
  bool is_checked = false;
  for (const Check& check : result.checks) {
    if (check.kernel != kernel) continue;
    if (check.outcome != Outcome::kPassed) return false;
    is_checked = true;
  }
  return is_checked;
}

// Whether one of its checks ended with an error.
bool has_failed(const SelfTestResult& result, std::string_view kernel) {
  return std::ranges::any_of(result.checks, [&](const Check& check) {
    return check.kernel == kernel && check.outcome == Outcome::kFailed;
  });
}

bool some_scan_passes(const SelfTestResult& result) {
  return std::ranges::any_of(result.checks, [&](const Check& check) {
    return !is_part(check.kernel) && passes(result, check.kernel);
  });
}

// "mma: 16 queries: wrong, ...; packing: ..."
std::string failures(const SelfTestResult& result) {
  std::string all;
  for (const Check& check : result.checks) {
    if (check.outcome == Outcome::kPassed) continue;
    all += (all.empty() ? "" : "; ") + check.kernel + ", " + check.name + ": " +
           std::string(name_of(check.outcome)) + (check.why.empty() ? "" : ", " + check.why);
  }
  return all.empty() ? "nothing was checked" : all;
}

// Why a device is of no use for what is asked; empty when it is of use.
std::string why_not(const SelfTestResult& result, const std::vector<std::string>& parts) {
  if (!result.why_no_device.empty()) return result.why_no_device;
  const bool has_parts =
      std::ranges::all_of(parts, [&](const std::string& part) { return passes(result, part); });
  if (some_scan_passes(result) && has_parts) return "";
  return result.device + " gives different results from the CPU (" + failures(result) + ")";
}

}  // namespace

CheckedEngines::CheckedEngines(const EngineRequest& request, EngineListener listener,
                               SelfTestRun run)
    : listener_(std::move(listener)),
      run_(std::move(run)),
      calls_(request.calls),
      engines_(choose(request)) {}

SelfTestResult CheckedEngines::test(int device, const std::vector<std::string>& parts) const {
  SelfTestOptions options{.device = device};
  for (const std::string_view part : kParts) {
    if (!lists(parts, part)) options.without.emplace_back(part);
  }
  return run_(options);
}

std::unique_ptr<EngineMaker> CheckedEngines::choose(const EngineRequest& request) {
  const auto name = parse_cuda_name(request.name);
  if (!may_have_device() || (!name && request.name != "auto")) {
    // The CPU; or an error that says why there are no others.
    return make_engine_maker(request.name == "auto" ? "cpu" : request.name, request.thread_count);
  }
  if (name) return named(request, name->kernel, name->device);
  int device_count = 1;
  for (int device = 0; device < device_count; ++device) {
    std::string why;
    try {
      const SelfTestResult result = test(device, request.parts);
      if (result.is_absent) {
        listener_.on_info("no GPU: " + result.why_no_device);
        break;
      }
      device_count = std::max(device_count, result.device_count);
      why = why_not(result, request.parts);
      if (why.empty()) return on_device("", device, result);
    } catch (const SelfTestError& error) {
      // Others may do better.
      device_count = std::max(device_count, error.device_count());
      why = error.what();
    } catch (const ResourceError& error) {
      why = error.what();
    }
    listener_.on_warning("CUDA device " + std::to_string(device) + " is not used: " + why);
  }
  return make_engine_maker("cpu", request.thread_count);
}

std::unique_ptr<EngineMaker> CheckedEngines::named(const EngineRequest& request,
                                                   const std::string& kernel, int device) {
  const SelfTestResult result = test(device, request.parts);
  if (!result.why_no_device.empty()) {
    refuse(request);
    throw ResourceError("the engine cuda could not run: " + result.why_no_device);
  }
  const bool has_kernel = std::ranges::any_of(
      result.checks, [&](const Check& check) { return check.kernel == kernel; });
  if (!kernel.empty() && !has_kernel) {
    refuse(request);
    throw ResourceError("the kernel cuda:" + kernel + " was not checked");
  }
  const std::string why = why_not(result, request.parts);
  if (!why.empty()) {
    throw ResourceError("the engine cuda cannot be used: " + why +
                        "; --engine cpu computes on the processor");
  }
  if (!kernel.empty() && !passes(result, kernel)) {
    throw ResourceError("the kernel cuda:" + kernel + " gives different results from the CPU (" +
                        failures(result) + "); --engine cuda takes a kernel that passed");
  }
  return on_device(kernel, device, result);
}

// Throws what says by its kind why there is no such engine, if it can be told without a self-test.
void CheckedEngines::refuse(const EngineRequest& request) const {
  const DeviceCalls::Call call(calls_, "starting its driver", kDeviceStartLimit);
  make_engine_maker(request.name, request.thread_count);
}

std::unique_ptr<EngineMaker> CheckedEngines::on_device(const std::string& kernel, int device,
                                                       const SelfTestResult& result) {
  const auto record = std::make_shared<KernelRecord>(listener_.on_quarantine);
  note(result, *record);
  device_ = device;
  listener_.on_info(
      "self-test of " + result.device + ": " +
      std::to_string(std::ranges::count(result.checks, Outcome::kPassed, &Check::outcome)) +
      " of " + std::to_string(result.checks.size()) + " checks passed");
  const DeviceCalls::Call call(calls_, "starting its driver", kDeviceStartLimit);
  return make_watched_engine_maker(make_device_engine_maker(kernel, device, record), calls_);
}

void CheckedEngines::check_parts(const std::vector<std::string>& parts) {
  if (!computes_on_device()) return;
  const auto record = engines_->kernel_record();
  std::vector<std::string> unchecked;
  for (const std::string& part : parts) {
    const bool is_checked = std::ranges::any_of(
        record->counts(), [&](const KernelRecord::Count& count) { return count.kernel == part; });
    if (!is_checked) unchecked.push_back(part);
  }
  if (!unchecked.empty()) check_now(unchecked, *record);
  for (const std::string& part : parts) {
    if (const auto why = record->why_unfit(part)) {
      throw ResourceError("the GPU's " + part + " cannot be used: " + *why +
                          "; --engine cpu computes on the processor");
    }
  }
}

// Notes only what says something of the kernels: the device may lack memory now, or take no second
// process.
void CheckedEngines::check_now(const std::vector<std::string>& parts, KernelRecord& record) const {
  // The scan's kernels are in use, and checked.
  SelfTestOptions options{.device = device_, .without = {"dp4a", "mma", "wgmma", "wgmma-tma"}};
  for (const std::string_view part : kParts) {
    if (!lists(parts, part)) options.without.emplace_back(part);
  }
  const SelfTestResult result = run_(options);
  std::string why = result.why_no_device;
  for (const std::string& part : parts) {
    const bool is_checked = std::ranges::count(result.checks, part, &Check::kernel) > 0;
    if (why.empty() && (!is_checked || has_failed(result, part))) why = failures(result);
  }
  if (!why.empty()) {
    throw ResourceError("the GPU's kernels that a new epoch needs could not be checked: " + why +
                        "; a restart checks them before the GPU's memory is in use");
  }
  note(result, record);
}

}  // namespace blindfuse
