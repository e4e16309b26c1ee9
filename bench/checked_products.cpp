// What a check of every product costs on the CPU: the product alone, in turns with the two forms
// that the check can have (docs/BENCHMARKS_DETAILS.md, "A check of every product").
//
// The products P of queries Q with the matrix M are right if P w = Q (M w) modulo 2^32, for weights
// w. Either four more columns of the matrix hold M w, as signed bytes with the weights 1, 2^8, 2^16
// and 2^24, so that the product multiplies them, too; or M w is a vector, and every query is
// multiplied with it by itself.
#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "host/cpu/cpu_engine.h"
#include "host/cpu/scan/matrix.h"
#include "host/cpu/scan/multiply_kernel.h"
#include "src/base/errors.h"
#include "src/program/program.h"

namespace blindfuse::bench {
namespace {

#ifdef __x86_64__
#define BLINDFUSE_BENCH_VECTORS \
  [[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]]
#else
#define BLINDFUSE_BENCH_VECTORS
#endif

BLINDFUSE_BENCH_VECTORS uint32_t dot(const uint32_t* a, const uint32_t* b, size_t count) {
  uint32_t sum = 0;
  for (size_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

// sums[i] += weight * bytes[i]
BLINDFUSE_BENCH_VECTORS void add_weighted(uint32_t* sums, const int8_t* bytes, uint32_t weight,
                                          size_t count) {
  for (size_t i = 0; i < count; ++i) sums[i] += weight * static_cast<uint32_t>(int32_t{bytes[i]});
}

struct Shape {
  std::string_view name;
  uint64_t rows;
  uint64_t columns;
};
constexpr Shape kShapes[] = {
    {"tall264", 1'179'648, 264}, {"tall1040", 1'179'648, 1'040}, {"square", 32'768, 32'768}};

struct Options {
  std::vector<std::string> shapes = {"tall264", "tall1040", "square"};
  std::vector<size_t> batches = {1, 8, 32, 128};
  double seconds = 30;  // of a shape and batch
  unsigned rounds_min = 9;
};

double seconds_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Times {
  std::vector<double> wall;
  std::vector<double> cpu;

  template <typename Work>
  void measure(const Work& work) {
    const double wall_before = seconds_of(CLOCK_MONOTONIC);
    const double cpu_before = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    work();
    cpu.push_back(seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu_before);
    wall.push_back(seconds_of(CLOCK_MONOTONIC) - wall_before);
  }
  double least_cpu() const { return *std::ranges::min_element(cpu); }
};

double quantile(std::vector<double> values, double part) {
  std::ranges::sort(values);
  return values[static_cast<size_t>(part * static_cast<double>(values.size() - 1) + 0.5)];
}

class Bench {
 public:
  Bench(const Shape& shape, size_t batch_max)
      : shape_(shape),
        plain_(std::make_shared<Matrix>(shape.rows, shape.columns)),
        checked_(std::make_shared<Matrix>(shape.rows, shape.columns + 4)),
        weights_(shape.columns),
        sums_(shape.rows),
        queries_(batch_max * shape.rows),
        products_(batch_max * (shape.columns + 4)) {
    std::mt19937_64 random(1);
    for (uint32_t& weight : weights_) weight = static_cast<uint32_t>(random()) | 1;
    for (uint32_t& word : queries_) word = static_cast<uint32_t>(random());
    std::vector<uint8_t> column(shape.rows);
    for (uint64_t c = 0; c < shape.columns; ++c) {
      for (size_t i = 0; i + 8 <= column.size(); i += 8) {
        const uint64_t word = random();
        std::copy_n(reinterpret_cast<const uint8_t*>(&word), 8, column.data() + i);
      }
      plain_->set_columns(c, column);
      checked_->set_columns(c, column);
      add_weighted(sums_.data(), reinterpret_cast<const int8_t*>(column.data()), weights_[c],
                   shape.rows);
    }
    for (uint32_t limb = 0; limb < 4; ++limb) {
      for (uint64_t r = 0; r < shape.rows; ++r) {
        column[r] = static_cast<uint8_t>((sums_[r] + 0x80808080u) >> 8 * limb) ^ 0x80;
      }
      checked_->set_columns(shape.columns + limb, column);
    }
  }

  void run(size_t batch, const Options& options) {
    const auto plain = make_cpu_engine(choose_kernel(""), plain_, 1);
    const auto checked = make_cpu_engine(choose_kernel(""), checked_, 1);
    Times alone, with_columns, weighing, dots;
    const auto begin = std::chrono::steady_clock::now();
    const auto is_over = [&] {
      return alone.wall.size() >= options.rounds_min &&
             std::chrono::steady_clock::now() - begin >
                 std::chrono::duration<double>(options.seconds);
    };
    const uint64_t pitch = shape_.columns + 4;
    while (!is_over()) {
      std::vector<uint32_t> left(batch), right(batch);
      std::ranges::fill(products_, 0u);
      alone.measure([&] { multiply(*plain, batch); });
      weighing.measure([&] {
        for (size_t b = 0; b < batch; ++b) {
          left[b] = dot(products_.data() + b * pitch, weights_.data(), shape_.columns);
        }
      });
      dots.measure([&] {
        for (size_t b = 0; b < batch; ++b) {
          right[b] = dot(queries_.data() + b * shape_.rows, sums_.data(), shape_.rows);
        }
      });
      invariant(left == right, "the products agree with the queries");
      std::ranges::fill(products_, 0u);
      with_columns.measure([&] { multiply(*checked, batch); });
      for (size_t b = 0; b < batch; ++b) {
        const uint32_t* limbs = products_.data() + b * pitch + shape_.columns;
        invariant(left[b] == limbs[0] + (limbs[1] << 8) + (limbs[2] << 16) + (limbs[3] << 24),
                  "the products agree with the four columns");
      }
    }
    print(batch, plain->name(), alone, with_columns, weighing, dots);
  }

 private:
  void multiply(Engine& engine, size_t batch) {
    engine.multiply({queries_.data(), batch, shape_.rows}, {0, shape_.rows},
                    {products_.data(), batch, shape_.columns + 4});
  }

  // The sum of some times over another, of each round.
  static nlohmann::json ratios(const Times& base, std::initializer_list<const Times*> parts) {
    std::vector<double> sums(base.wall.size()), each;
    double cpu = 0;
    for (const Times* part : parts) {
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += part->wall[i];
      cpu += part->least_cpu();
    }
    for (size_t i = 0; i < sums.size(); ++i) each.push_back(sums[i] / base.wall[i]);
    return {{"of_medians", quantile(sums, 0.5) / quantile(base.wall, 0.5)},
            {"quartiles", {quantile(each, 0.25), quantile(each, 0.75)}},
            {"of_least_processor_times", cpu / base.least_cpu()}};
  }

  void print(size_t batch, std::string_view kernel, const Times& alone, const Times& with_columns,
             const Times& weighing, const Times& dots) const {
    const nlohmann::json line = {
        {"shape", shape_.name},
        {"rows", shape_.rows},
        {"columns", shape_.columns},
        {"batch", batch},
        {"engine", kernel},
        {"rounds", alone.wall.size()},
        {"seconds", quantile(alone.wall, 0.5)},
        {"least_processor_seconds", alone.least_cpu()},
        {"weighing_least_processor_seconds", weighing.least_cpu()},
        {"dots_least_processor_seconds", dots.least_cpu()},
        {"columns_over_alone", ratios(alone, {&with_columns, &weighing})},
        {"vector_over_alone", ratios(alone, {&alone, &weighing, &dots})},
    };
    std::puts(line.dump().c_str());
    std::fflush(stdout);
  }

  const Shape shape_;
  std::shared_ptr<Matrix> plain_, checked_;
  std::vector<uint32_t> weights_;  // w
  std::vector<uint32_t> sums_;     // M w
  std::vector<uint32_t> queries_;
  std::vector<uint32_t> products_;
};

void run(const Options& options) {
  for (const std::string& name : options.shapes) {
    const auto* shape = std::ranges::find(kShapes, name, &Shape::name);
    if (shape == std::end(kShapes)) throw UsageError("there is no shape \"" + name + "\"");
    Bench bench(*shape, std::ranges::max(options.batches));
    for (const size_t batch : options.batches) bench.run(batch, options);
  }
}

}  // namespace
}  // namespace blindfuse::bench

int main(int argc, char** argv) {
  using namespace blindfuse::bench;
  CLI::App app(
      "Times the product on one thread, alone and with a check of its result: by four more "
      "columns, "
      "and by a vector.\nPrints JSON, an object a shape and batch.",
      "blindfuse-bench-checks");
  Options options;
  app.add_option("--shape", options.shapes, "Shapes")->delimiter(',')->capture_default_str();
  app.add_option("--batch", options.batches, "Queries at once")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--seconds", options.seconds, "Time for each shape and batch")
      ->capture_default_str();
  app.add_option("--rounds", options.rounds_min, "Rounds at least")->capture_default_str();
  app.callback([&options] { run(options); });
  return blindfuse::run_program(app, argc, argv);
}
