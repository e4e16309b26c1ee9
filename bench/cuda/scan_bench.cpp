#include "bench/cuda/scan_bench.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <span>

#include "bench/cuda/scan_problem.h"
#include "bench/cuda/stopwatch.h"
#include "src/base/errors.h"

namespace blindfuse::bench {
namespace {

// The one that all others are compared with, and the one that it is compared with itself.
constexpr const char* kReference = "dp4a";
constexpr const char* kOther = "mma";

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
  const uint32_t expected = folded_on_host(bench, kCheckShape);
  const uint32_t folded = bench.yardsticks.fold(problem.matrix());
  if (folded == expected) return;
  throw ResourceError("the yardstick of reads found " + std::to_string(folded) +
                      " as the exclusive or of all words; the host finds " +
                      std::to_string(expected));
}

void check_same(const std::string& kernel, size_t batch, const std::vector<uint32_t>& products,
                const std::vector<uint32_t>& expected) {
  const auto [at, other] = std::ranges::mismatch(products, expected);
  if (at == products.end()) return;
  const auto place = static_cast<uint64_t>(at - products.begin());
  throw ResourceError("the kernels " + kernel + " and " + kReference + " differ: with batch " +
                      std::to_string(batch) + " on " + std::to_string(kCheckShape.rows) + " x " +
                      std::to_string(kCheckShape.columns) + ", the product of query " +
                      std::to_string(place / kCheckShape.columns) + " with column " +
                      std::to_string(place % kCheckShape.columns) + " is " + std::to_string(*at) +
                      " by " + kernel + ", and " + std::to_string(*other) + " by " + kReference);
}

class ScanTimer {
 public:
  ScanTimer(const Bench& bench, ScanProblem& problem) : bench_(bench), problem_(problem) {}

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

void check_kernels(const Bench& bench) {
  ScanProblem problem(kCheckShape, bench.options.batches.back(), bench.options.device, bench.random,
                      bench.threads);
  check_read(bench, problem);
  std::vector<std::string> kernels = bench.kernels;
  if (std::ranges::find(kernels, kOther) == kernels.end()) kernels.emplace_back(kOther);
  const auto reference = problem.make_scanner(kReference);
  for (const std::string& kernel : kernels) {
    if (kernel == kReference) continue;
    const auto scanner = problem.make_scanner(kernel);
    for (const size_t batch : bench.options.batches) {
      check_same(kernel, batch, problem.products(*scanner, batch),
                 problem.products(*reference, batch));
    }
  }
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
    for (const auto& scanner : scanners) times.push_back(timer.measure(*scanner, batch));
    if (batch == 1) alone = std::ranges::min(times, {}, &ScanTimes::seconds).seconds;
    for (size_t k = 0; k < times.size(); ++k) {
      times[k].seconds_alone = alone;
      all[{bench.kernels[k], batch}] = times[k].seconds;
      bench.report.print(shape, bench.kernels[k], batch, times[k]);
    }
  }
  return all;
}

}  // namespace blindfuse::bench
