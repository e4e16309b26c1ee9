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
#include "host/cpu/cpu_engine_maker.h"
#include "src/base/errors.h"
#include "src/engine/engine.h"

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

// The products of the queries that ScanProblem cuts, by the CPU.
std::vector<uint32_t> products_by_cpu(const Bench& bench, const Shape& shape, size_t batch) {
  const auto engine = make_cpu_engine_maker("", 0)->make_engine(shape.rows, shape.columns);
  fill_columns(
      bench.random, shape, bench.threads,
      [&](uint64_t first, std::span<const uint8_t> bytes) { engine->set_columns(first, bytes); });
  engine->seal();
  std::vector<uint32_t> words(batch * shape.rows), products(batch * shape.columns);
  for (size_t q = 0; q < batch; ++q) {
    const std::span<const uint8_t> query = ScanProblem::query(bench.random, shape, q);
    std::memcpy(words.data() + q * shape.rows, query.data(), query.size());
  }
  engine->multiply({words.data(), batch, shape.rows}, {0, shape.rows},
                   {products.data(), batch, shape.columns});
  return products;
}

Check compare(std::span<const uint32_t> products, std::span<const uint32_t> expected,
              uint64_t column_count) {
  Check check{.product_count = products.size()};
  std::vector<bool> columns(column_count);
  size_t last_query = SIZE_MAX;
  for (size_t i = 0; i < products.size(); ++i) {
    if (products[i] == expected[i]) continue;
    const size_t query = i / column_count;
    if (check.differing == 0) {
      check.query = query;
      check.column = i % column_count;
      check.found = products[i];
      check.expected = expected[i];
    }
    ++check.differing;
    check.queries += query != last_query;
    last_query = query;
    columns[i % column_count] = true;
  }
  check.columns = static_cast<uint64_t>(std::ranges::count(columns, true));
  return check;
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
  const auto expected = products_by_cpu(bench, shape, bench.options.batches.back());
  std::vector<std::string> right;
  for (const std::string& kernel : bench.kernels) {
    const auto scanner = problem.make_scanner(kernel);
    size_t differing = 0;
    for (const size_t batch : bench.options.batches) {
      const Check check = compare(problem.products(*scanner, batch),
                                  std::span(expected).first(batch * shape.columns), shape.columns);
      bench.report.print(shape, kernel, batch, check);
      differing += check.differing;
    }
    if (differing == 0) right.push_back(kernel);
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
    for (const auto& scanner : scanners) times.push_back(timer.measure(*scanner, batch));
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
