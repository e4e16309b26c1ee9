// The product on the CPU next to the machine's limits: its streaming reads with as many threads,
// and its multiply instruction from registers.
//
// A batch of one has to read the matrix once, and is measured by the reads; a large batch has to
// multiply, and is measured by the instruction. Every measurement takes turns with its yardsticks,
// so that what disturbs the one disturbs the others.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "bench/yardsticks.h"
#include "host/cpu/cpu_engine.h"
#include "host/cpu/scan/matrix.h"
#include "host/cpu/scan/multiply_kernel.h"
#include "src/base/errors.h"
#include "src/program/program.h"

namespace blindfuse::bench {
namespace {

struct Shape {
  uint64_t rows;
  uint64_t columns;
};

// Parses "ROWSxCOLUMNS". Throws UsageError.
Shape shape_of(const std::string& text) {
  Shape shape{};
  int end = 0;
  if (std::sscanf(text.c_str(), "%" SCNu64 "x%" SCNu64 "%n", &shape.rows, &shape.columns, &end) !=
          2 ||
      static_cast<size_t>(end) != text.size() || shape.rows == 0 || shape.columns == 0) {
    throw UsageError("\"" + text + "\" is not a shape; expected ROWSxCOLUMNS, as in 90112x12096");
  }
  return shape;
}

struct Options {
  std::vector<std::string> kernels = {"auto"};
  // Tall, square and large.
  std::vector<std::string> shapes = {"1179648x264", "1179648x1040", "32768x32768", "233472x16384"};
  std::vector<size_t> batches = {1, 2, 4, 8, 16, 32, 64};
  std::vector<unsigned> threads = {1, 2};
  unsigned rounds = 7;
};

struct Measurement {
  double seconds = 0;       // medians
  double read_seconds = 0;  // of the whole matrix
  double peak = 0;          // multiply-adds a second
};

double median(std::vector<double>& values) {
  std::ranges::nth_element(values, values.begin() + static_cast<long>(values.size() / 2));
  return values[values.size() / 2];
}

Matrix random_matrix(const Shape& shape) {
  Matrix matrix(shape.rows, shape.columns);
  std::mt19937_64 random(1);
  std::vector<uint8_t> column(shape.rows);
  for (uint64_t c = 0; c < shape.columns; ++c) {
    for (size_t i = 0; i + 8 <= column.size(); i += 8) {
      const uint64_t word = random();
      std::copy_n(reinterpret_cast<const uint8_t*>(&word), 8, column.data() + i);
    }
    matrix.set_columns(c, column);
  }
  return matrix;
}

class Bench {
 public:
  Bench(const Shape& shape, const Options& options)
      : shape_(shape), options_(options), matrix_(std::make_shared<Matrix>(random_matrix(shape))) {
    const size_t batch = std::ranges::max(options.batches);
    queries_.resize(batch * shape.rows);
    std::mt19937 random(2);
    for (uint32_t& word : queries_) word = static_cast<uint32_t>(random());
    products_.resize(batch * shape.columns);
  }

  void run() {
    for (const unsigned thread_count : options_.threads) {
      WorkerThreads threads(thread_count);
      for (const std::string& name : kernels()) {
        const auto engine =
            make_cpu_engine(choose_kernel(name == "auto" ? "" : name), matrix_, thread_count);
        const std::string kernel(engine->name().substr(4));
        for (const size_t batch : options_.batches) {
          print(kernel, batch, thread_count, measure(*engine, kernel, batch, threads));
        }
      }
    }
  }

 private:
  std::vector<std::string> kernels() const {
    if (options_.kernels != std::vector<std::string>{"all"}) return options_.kernels;
    std::vector<std::string> names;
    for (const std::string_view name : cpu_kernel_names()) names.emplace_back(name);
    return names;
  }

  Measurement measure(Engine& engine, const std::string& kernel, size_t batch,
                      WorkerThreads& threads) {
    std::vector<double> seconds, reads, peaks;
    for (unsigned i = 0; i < options_.rounds; ++i) {
      reads.push_back(read_seconds(*matrix_, threads));
      peaks.push_back(peak_multiply_adds(kernel, threads));
      const auto start = std::chrono::steady_clock::now();
      engine.multiply({queries_.data(), batch, shape_.rows}, {0, shape_.rows},
                      {products_.data(), batch, shape_.columns});
      seconds.push_back(
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    return {median(seconds), median(reads), median(peaks)};
  }

  void print(const std::string& kernel, size_t batch, unsigned threads,
             const Measurement& m) const {
    const double bytes = static_cast<double>(shape_.rows * shape_.columns);
    const double effective = bytes * static_cast<double>(batch) / m.seconds;
    const double read = bytes / m.read_seconds;
    const nlohmann::json line = {
        {"kernel", kernel},
        {"rows", shape_.rows},
        {"columns", shape_.columns},
        {"batch", batch},
        {"threads", threads},
        {"seconds", m.seconds},
        {"effective_bytes_per_second", effective},
        {"read_bytes_per_second", read},
        {"ratio", effective / read},
        {"peak_multiply_adds_per_second", m.peak},
        {"instruction_peak_ratio",
         m.peak == 0 ? nlohmann::json() : nlohmann::json(effective / m.peak)},
    };
    std::puts(line.dump().c_str());
    std::fflush(stdout);
  }

  const Shape shape_;
  const Options& options_;
  std::shared_ptr<Matrix> matrix_;
  std::vector<uint32_t> queries_;
  std::vector<uint32_t> products_;
};

void run(const Options& options) {
  for (const std::string& name : options.shapes) Bench(shape_of(name), options).run();
}

}  // namespace
}  // namespace blindfuse::bench

int main(int argc, char** argv) {
  using namespace blindfuse::bench;
  CLI::App app(
      "Times the product of queries and matrix, streaming reads and the multiply "
      "instruction, and\nprints a line of JSON a measurement. Effective bytes count the matrix "
      "once a query; one is one multiply-add of u32 "
      "and i8.",
      "blindfuse-bench-engine");
  Options options;
  app.add_option("--kernel", options.kernels, "Kernels: auto, all, or names")->delimiter(',');
  app.add_option("--shape", options.shapes, "Shapes: ROWSxCOLUMNS")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--batch", options.batches, "Queries at once")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--threads", options.threads, "Numbers of threads")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--rounds", options.rounds, "Repetitions, of which the median counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.callback([&options] { run(options); });
  return blindfuse::run_program(app, argc, argv);
}
