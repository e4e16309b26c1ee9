// The probes, and the parts that each has: the device, and lines of JSON for its findings.
#pragma once

#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "bench/cuda/stopwatch.h"
#include "cuda/device/stream.h"

namespace blindfuse::probes {

struct ProbeOptions {
  std::vector<std::string> probes;  // none: all of them
  double seconds = 10;              // for which the largest products go on
  std::string json_file;
};

// The description of a device, which is then the current one.
struct ProbedDevice {
  // Takes the first device. Throws ResourceError when it cannot be used.
  ProbedDevice();

  std::string name;
  uint32_t processor_count = 0;
  uint32_t threads_a_processor = 0;  // at most
  int major = 0;                     // of the compute capability
};

class Probe {
 public:
  // Throws the errors of ProbedDevice, and InputError if json_file cannot be written.
  explicit Probe(const ProbeOptions& options);

  const ProbeOptions& options() const { return options_; }
  const ProbedDevice& device() const { return device_; }
  const Stream& stream() const { return stream_; }

  // Returns the median seconds of the work that `start` puts into the stream, after one run that
  // warms up.
  template <typename Start>
  double seconds(const Start& start) {
    std::vector<double> all;
    constexpr int kRounds = 5;
    for (int i = 0; i <= kRounds; ++i) {
      const double taken = stopwatch_.seconds(stream_, start);
      if (i > 0) all.push_back(taken);
    }
    return bench::median(std::move(all));
  }
  // Returns the seconds of one run.
  template <typename Start>
  double seconds_once(const Start& start) {
    return stopwatch_.seconds(stream_, start);
  }

  // From here on lines are this probe's.
  void begin(std::string_view name);
  // Prints a line. figure: its result in a few words; end() prints that of the line with the
  // highest score. is_right: whether the result is right.
  void print(nlohmann::json line, double score, const std::string& figure, bool is_right);
  // Says in place of lines why there are none.
  void leave_out(const std::string& why);
  void end();

  // True if all lines printed until now were right.
  bool all_right() const { return all_right_; }

 private:
  void write(const nlohmann::json& line);

  const ProbeOptions& options_;
  const ProbedDevice device_;
  std::ofstream json_file_;
  Stream stream_;
  bench::Stopwatch stopwatch_;
  std::string name_;
  double best_score_ = 0;
  std::string best_;
  unsigned wrong_ = 0;
  bool all_right_ = true;
};

// The probes. Each measures the device's limit for one of the operations that kernels use, checks
// its results, and says in its lines whether they are right. They throw CUDA's errors.

// Bandwidth of reads against bytes in flight, of memory whose columns lie `pitch` bytes apart: by
// loads, and by the tensor memory accelerator.
void probe_loads(Probe& probe, uint64_t pitch);
void probe_tensor_copies(Probe& probe, uint64_t pitch);
// Reads by all blocks of the same bytes, as many as limbs have.
void probe_limb_reads(Probe& probe);
// Products of operands in shared memory, with 16 to 256 columns; then for options().seconds with
// 256, in parts, so that clocks under power are seen.
void probe_products(Probe& probe);
// Additions to products.
void probe_reductions(Probe& probe);

}  // namespace blindfuse::probes
