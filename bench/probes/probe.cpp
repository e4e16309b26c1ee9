#include "bench/probes/probe.h"

#include <cuda_runtime_api.h>

#include <cstdio>

#include "cuda/device/check.h"
#include "cuda/device/device_info.h"
#include "src/base/errors.h"

namespace blindfuse::probes {

ProbedDevice::ProbedDevice() {
  constexpr int kNumber = 0;
  const std::string why_not = why_no_cuda_device(kNumber);
  if (!why_not.empty()) throw ResourceError("there is no GPU to measure: " + why_not);
  BLINDFUSE_CUDA(cudaSetDevice(kNumber));
  name = cuda_device_name(kNumber);
  int processors = 0, threads = 0;
  BLINDFUSE_CUDA(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, kNumber));
  BLINDFUSE_CUDA(cudaDeviceGetAttribute(&threads, cudaDevAttrMaxThreadsPerMultiProcessor, kNumber));
  BLINDFUSE_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, kNumber));
  processor_count = static_cast<uint32_t>(processors);
  threads_a_processor = static_cast<uint32_t>(threads);
}

Probe::Probe(const ProbeOptions& options) : options_(options) {
  if (options.json_file.empty()) return;
  json_file_.open(options.json_file);
  if (!json_file_) throw InputError("cannot write " + options.json_file);
}

void Probe::begin(std::string_view name) {
  name_ = name;
  best_score_ = 0;
  best_.clear();
  wrong_ = 0;
}

void Probe::print(nlohmann::json line, double score, const std::string& figure, bool is_right) {
  line["right"] = is_right;
  write(line);
  if (!is_right) {
    ++wrong_;
    all_right_ = false;
    return;
  }
  if (score < best_score_) return;
  best_score_ = score;
  best_ = figure;
}

void Probe::leave_out(const std::string& why) {
  write({{"left_out", why}});
  best_ = "left out: " + why;
}

void Probe::end() {
  const std::string wrong = wrong_ == 0 ? "" : "; " + std::to_string(wrong_) + " lines are wrong";
  std::printf("figure: %s%s\n", best_.c_str(), wrong.c_str());
  std::fflush(stdout);
}

void Probe::write(const nlohmann::json& line) {
  nlohmann::json whole = {{"probe", name_}, {"device", device_.name}};
  whole.update(line);
  std::puts(whole.dump().c_str());
  std::fflush(stdout);
  if (options_.json_file.empty()) return;
  json_file_ << whole.dump() << std::endl;
  if (!json_file_) throw InputError("cannot write " + options_.json_file);
}

}  // namespace blindfuse::probes
