#include "bench/cuda/scan_bench.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>

#include "bench/cuda/scan_problem.h"
#include "bench/cuda/stopwatch.h"
#include "src/base/errors.h"

namespace blindfuse::bench {
namespace {

// Exclusive or of all words of a matrix of random bytes.
uint32_t folded_on_host(const Bench& bench, const Shape& shape) {
  invariant(shape.rows % sizeof(uint32_t) == 0, "columns of whole words");
  std::atomic<uint32_t> folded = 0;
  fill_columns(bench.random, shape, bench.threads, [&](uint64_t, std::span<const uint8_t> bytes) {
    uint32_t fold = 0;
    for (size_t i = 0; i < bytes.size(); i += sizeof fold) {
      uint32_t word = 0;
      std::memcpy(&word, bytes.data() + i, sizeof word);
      fold ^= word;
    }
    folded ^= fold;
  });
  return folded;
}

void check_read(const Bench& bench, const ScanProblem& problem) {
  const uint32_t expected = folded_on_host(bench, bench.options.check_shape());
  const uint32_t folded = bench.yardsticks.fold(problem.matrix());
  if (folded == expected) return;
  throw ResourceError("the yardstick of reads found " + std::to_string(folded) +
                      " as the exclusive or of all words; the host finds " +
                      std::to_string(expected));
}

class ScanTimer {
 public:
  ScanTimer(const Bench& bench, ScanProblem& problem)
      : bench_(bench), problem_(problem), stopwatch_(bench.options.sizes().lead_in_bytes) {}

  ScanTimes measure(Scanner& scanner, size_t batch) {
    std::vector<double> seconds;
    std::vector<Rates> rates;
    for (unsigned i = 0; i <= bench_.options.rounds; ++i) {
      const Rates these = bench_.yardsticks.measure(problem_.matrix());
      const double taken =
          stopwatch_.seconds(problem_.stream(), [&] { problem_.start(scanner, batch); });
      if (i == 0) continue;  // warms up
      rates.push_back(these);
      seconds.push_back(taken);
    }
    return {median(std::move(seconds)), median(rates), std::nullopt};
  }

 private:
  const Bench& bench_;
  ScanProblem& problem_;
  Stopwatch stopwatch_;
};

}  // namespace

std::vector<std::string> right_kernels(const Bench& bench) {
  const Shape& shape = bench.options.check_shape();
  ScanProblem problem(shape, bench.options.batches.back(), bench.options.device, bench.random,
                      bench.threads);
  check_read(bench, problem);
  std::vector<std::string> right;
  for (const std::string& kernel : bench.kernels) {
    const auto scanner = problem.make_scanner(kernel);
    bool is_right = true;
    for (const size_t batch : bench.options.batches) {
      const Check check = problem.check(*scanner, batch);
      bench.report.print(shape, kernel, batch, check);
      is_right = is_right && check.difference.count == 0;
    }
    if (is_right) right.push_back(kernel);
  }
  bench.report.print_figure();
  return right;
}

ScanSeconds time_scans(const Bench& bench, const Shape& shape) {
  const std::vector<size_t>& batches = bench.options.batches;
  ScanProblem problem(shape, batches.back(), bench.options.device, bench.random, bench.threads);
  std::vector<std::unique_ptr<Scanner>> scanners;
  for (const std::string& kernel : bench.kernels) scanners.push_back(problem.make_scanner(kernel));
  ScanTimer timer(bench, problem);
  ScanSeconds all;
  std::optional<double> alone;
  for (const size_t batch : batches) {
    std::vector<ScanTimes> times;
    for (size_t k = 0; k < scanners.size(); ++k) {
      times.push_back(timer.measure(*scanners[k], batch));
      bench.report.print(shape, bench.kernels[k], batch, problem.check(*scanners[k], batch));
    }
    if (batch == 1) alone = std::ranges::min(times, {}, &ScanTimes::seconds).seconds;
    for (size_t k = 0; k < times.size(); ++k) {
      times[k].seconds_alone = alone;
      all[{bench.kernels[k], batch}] = times[k].seconds;
      bench.report.print(shape, bench.kernels[k], batch, times[k]);
    }
  }
  bench.report.print_figure();
  return all;
}

}  // namespace blindfuse::bench
