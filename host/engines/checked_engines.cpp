#include "host/engines/checked_engines.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "host/engines/engine_factory.h"
#include "host/system/device_fault.h"
#include "src/base/errors.h"

namespace blindfuse {
namespace {

using Check = SelfTestResult::Check;
using Outcome = SelfTestResult::Outcome;

// The self-test checks the kernels of the scan, and these parts in addition.
const std::vector<std::string> kScans = {"dp4a", "mma", "wgmma", "wgmma-tma"};
constexpr std::string_view kParts[] = {"packing", "tables"};

bool lists(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::count(names, name) > 0;
}

bool passes(const SelfTestResult& result, std::string_view kernel) {
  const auto is_of = [&](const Check& check) { return check.kernel == kernel; };
  return std::ranges::any_of(result.checks, is_of) &&
         std::ranges::all_of(result.checks, [&](const Check& check) {
           return !is_of(check) || check.outcome == Outcome::kPassed;
         });
}

bool all_pass(const SelfTestResult& result, const std::vector<std::string>& parts) {
  return std::ranges::all_of(parts, [&](const auto& part) { return passes(result, part); });
}

std::vector<std::string> scans_that_pass(const SelfTestResult& result) {
  std::vector<std::string> scans;
  for (const std::string_view kernel : kScans) {
    if (passes(result, kernel)) scans.emplace_back(kernel);
  }
  return scans;
}

// "mma, 16 queries: wrong, ...; packing, ..."
std::string failures(const SelfTestResult& result) {
  if (!result.why_no_device.empty()) return result.why_no_device;
  std::string all;
  for (const Check& check : result.checks) {
    if (check.outcome == Outcome::kPassed) continue;
    all += (all.empty() ? "" : "; ") + check.kernel + ", " + check.name + ": " +
           std::string(name_of(check.outcome)) + (check.why.empty() ? "" : ", " + check.why);
  }
  return all.empty() ? "nothing was checked" : all;
}

// The reason why a device cannot compute what is asked; empty when it can.
std::string why_not(const SelfTestResult& result, const std::vector<std::string>& parts) {
  if (!result.why_no_device.empty()) return result.why_no_device;
  if (!scans_that_pass(result).empty() && all_pass(result, parts)) return "";
  return result.device + " gives different results from the CPU (" + failures(result) + ")";
}

}  // namespace

CheckedEngines::CheckedEngines(const EngineRequest& request, EngineListener listener,
                               SelfTestRun run)
    : request_(request),
      listener_(std::move(listener)),
      run_(std::move(run)),
      checked_parts_(request.parts),
      engines_(choose()) {}

SelfTestResult CheckedEngines::test(int device, const std::vector<std::string>& parts,
                                    const std::vector<std::string>& kernels) const {
  SelfTestOptions options{.device = device};
  for (const std::string& kernel : kScans) {
    if (!lists(kernels, kernel)) options.without.push_back(kernel);
  }
  for (const std::string_view part : kParts) {
    if (!lists(parts, part)) options.without.emplace_back(part);
  }
  return run_(options);
}

std::unique_ptr<EngineMaker> CheckedEngines::choose() {
  const auto name = parse_cuda_name(request_.name);
  const auto on_cpu = [&] {
    watch_.reset();
    return make_engine_maker("cpu", request_.thread_count);
  };
  if (!may_have_device() || (!name && request_.name != "auto")) {
    // The engine is the CPU's, or an error says why there are no others.
    return request_.name == "auto" ? on_cpu()
                                   : make_engine_maker(request_.name, request_.thread_count);
  }
  watch_ = watch_device(request_.call_limit, request_.on_hang);
  if (name) return named(name->kernel, name->device);
  if (const auto fault = read_device_fault()) {
    is_set_aside_ = true;
    listener_.on_warning("the GPU is not used, and the processor computes, until " +
                         device_fault_file().string() + " is deleted, which says: " + *fault);
    return on_cpu();
  }
  int device_count = 1;
  for (int device = 0; device < device_count; ++device) {
    std::string why;
    try {
      const SelfTestResult result = test(device, request_.parts, kScans);
      if (result.is_absent) {
        listener_.on_info("no GPU: " + result.why_no_device);
        break;
      }
      device_count = std::max(device_count, result.device_count);
      why = why_not(result, request_.parts);
      if (why.empty()) return on_device("", device, result);
    } catch (const SelfTestError& error) {
      // Another device may do better.
      device_count = std::max(device_count, error.device_count());
      why = error.what();
    } catch (const ResourceError& error) {
      why = error.what();
    }
    listener_.on_warning("CUDA device " + std::to_string(device) + " is not used: " + why);
  }
  return on_cpu();
}

std::unique_ptr<EngineMaker> CheckedEngines::named(const std::string& kernel, int device) {
  const SelfTestResult result = test(device, request_.parts, kScans);
  const bool is_checked =
      kernel.empty() || std::ranges::count(result.checks, kernel, &Check::kernel) > 0;
  if (!result.why_no_device.empty() || !is_checked) {
    // Throws an error whose kind says why there is no such engine.
    make_engine_maker(request_.name, request_.thread_count);
    throw ResourceError("the engine " + request_.name + " could not run: " + failures(result));
  }
  const std::string why = why_not(result, request_.parts);
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

std::unique_ptr<EngineMaker> CheckedEngines::on_device(const std::string& kernel, int device,
                                                       const SelfTestResult& result) {
  const auto passed = std::ranges::count(result.checks, Outcome::kPassed, &Check::outcome);
  listener_.on_info("self-test of " + result.device + ": " + std::to_string(passed) + " of " +
                    std::to_string(result.checks.size()) + " checks passed");
  if (!result.passed()) {
    listener_.on_warning("kernels of the GPU are not used, since they failed the self-test: " +
                         failures(result));
  }
  auto engines = make_device_engine_maker(
      kernel.empty() ? scans_that_pass(result) : std::vector<std::string>{kernel}, device);
  device_ = result.device;
  device_number_ = device;
  return engines;
}

void CheckedEngines::check_parts(const std::vector<std::string>& parts) {
  if (device_.empty()) return;
  std::vector<std::string> unchecked;
  for (const std::string& part : parts) {
    if (!lists(checked_parts_, part)) unchecked.push_back(part);
  }
  if (unchecked.empty()) return;
  const SelfTestResult result = test(device_number_, unchecked, {});
  if (!result.why_no_device.empty() || !all_pass(result, unchecked)) {
    throw ResourceError(
        "the GPU's kernels that a new epoch needs did not pass their check: " + failures(result) +
        "; a restart checks them before the GPU's memory is in use");
  }
  checked_parts_.insert(checked_parts_.end(), unchecked.begin(), unchecked.end());
}

}  // namespace blindfuse
