// The product on a GPU next to the device's limits: its own copies and reads, the vendor's product
// of bytes, and transfers from the host. Every measurement takes turns with its yardsticks, so that
// what disturbs the one disturbs the others.
//
// Napkin, on an H200 (4.8 TB/s; 990 T multiply-adds of bytes a second, of which a query takes four
// for a byte of the matrix): reading a byte takes as long as multiplying it with 52 queries. Up to
// there a batch should take as long as one query, and be measured by the reads; beyond, by the
// product.
//
// It has no use for the logging library and the like of the other programs, and links only the C
// library, so that it can be taken to a machine that has a GPU and nothing else
// (bench/gpu/quarter).
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/cuda/command_line.h"
#include "bench/cuda/options.h"
#include "bench/cuda/scan_bench.h"
#include "cuda/cuda_engine_maker.h"
#include "cuda/device/device_info.h"
#include "src/base/errors.h"

namespace blindfuse::bench {
namespace {

constexpr const char* kAll = "all";

bool has(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

const std::vector<std::string> kKernelNames = {kAll, "auto", "dp4a", "mma", "wgmma", "wgmma-tma"};

// "check" is what comes before all others, and may come alone.
const std::vector<std::string> kMeasurements = {"check",      "scan",    "answers", "packed",
                                                "two-levels", "buckets", "hint",    "packs"};

std::vector<std::string> shape_names() {
  std::vector<std::string> names;
  for (const Shape& shape : kScanShapes) names.emplace_back(shape.name);
  for (const Shape& shape : kTinyShapes) names.emplace_back(shape.name);
  names.emplace_back(kBucketShape.name);
  names.emplace_back(kHintShape.name);
  names.emplace_back(kPackShape.name);
  return names;
}

bool is_wanted(const Options& options, const Shape& shape) {
  return options.shapes.empty() || has(options.shapes, shape.name);
}

// Uses the first device; CUDA_VISIBLE_DEVICES says which it is.
void use_device() {
  const std::string why_not = why_no_cuda_device(kDevice);
  if (!why_not.empty()) throw ResourceError("there is no GPU to measure: " + why_not);
  BLINDFUSE_CUDA(cudaSetDevice(kDevice));
}

std::vector<std::string> chosen_kernels(const Options& options, const Yardsticks& yardsticks) {
  const std::string& why_no_cublas = yardsticks.why_no_product();
  if (!why_no_cublas.empty()) {
    std::fprintf(stderr, "no peak to compare with: %s\n", why_no_cublas.c_str());
  }
  if (!has(options.kernels, kAll)) return options.kernels;
  std::vector<std::string> names = {"auto"};
  for (const std::string_view name : cuda_kernel_names()) names.emplace_back(name);
  return names;
}

// Leaves out a shape that this device is too small for.
template <typename Measure>
void measure_if_there_is_room(const Bench& bench, const Shape& shape, const Measure& measure) {
  if (!is_wanted(bench.options, shape)) return;
  try {
    measure();
  } catch (const DeviceLostError& error) {
    const std::string text = error.what();
    if (text.find(" is wrong") != std::string::npos) bench.report.say_wrong(text);
    throw;
  } catch (const ResourceError& error) {
    std::fprintf(stderr, "%s is left out: %s\n", std::string(shape.name).c_str(), error.what());
  }
}

void measure_all(const Bench& bench) {
  const Options& options = bench.options;
  const auto is_asked_for = [&](const char* name) { return has(options.measurements, name); };
  for (const Shape& shape : options.scan_shapes()) {
    ScanSeconds scans;
    measure_if_there_is_room(bench, shape, [&] {
      if (is_asked_for("scan")) scans = time_scans(bench, shape);
      if (is_asked_for("answers")) time_pipelines(bench, shape, scans);
    });
    if (shape.name != options.packed_shape().name) continue;
    measure_if_there_is_room(bench, shape, [&] {
      if (is_asked_for("packed")) time_packed_pipelines(bench, shape, scans);
      if (is_asked_for("two-levels")) time_two_levels(bench, shape, scans);
    });
  }
  if (is_asked_for("buckets")) {
    const Shape& shape = options.bucket_shape();
    measure_if_there_is_room(bench, shape, [&] { time_buckets(bench, shape); });
  }
  if (is_asked_for("hint")) {
    const Shape& shape = options.hint_shape();
    measure_if_there_is_room(bench, shape, [&] { time_hint(bench, shape); });
  }
  if (is_asked_for("packs")) {
    const Shape& shape = options.pack_shape();
    measure_if_there_is_room(bench, shape, [&] { time_packs(bench, shape); });
  }
  if (bench.report.is_empty()) {
    throw ResourceError(
        "nothing was measured: the device has no room for it, or --shapes names "
        "nothing that --measure takes");
  }
}

void run(Options options) {
  use_device();
  // One query comes first: the other batches are compared with it.
  std::ranges::sort(options.batches);
  const auto twice = std::ranges::unique(options.batches);
  options.batches.erase(twice.begin(), twice.end());
  Report report(options, cuda_device_name(kDevice));
  const RandomBytes random;
  WorkerThreads threads(0);
  Yardsticks yardsticks(random, options);
  const std::vector<std::string> kernels = chosen_kernels(options, yardsticks);
  const std::vector<std::string> right =
      right_kernels({options, kernels, random, threads, yardsticks, report});
  const bool only_checks = options.measurements == std::vector<std::string>{"check"};
  if (!right.empty() && !only_checks) {
    measure_all({options, right, random, threads, yardsticks, report});
  }
  if (report.wrong_count() == 0) return;
  throw ResourceError(
      "results differ from the CPU's: each line above that begins with WRONG names "
      "a kernel");
}

}  // namespace
}  // namespace blindfuse::bench

int main(int argc, char** argv) {
  using namespace blindfuse::bench;
  CLI::App app(
      "Times the product of queries and matrix on a GPU, reads of its memory, products of "
      "bytes by cuBLAS\nand transfers from the host; then a server's answers, the hint, and "
      "packing "
      "tables.\nOne line of JSON a measurement.",
      "blindfuse-bench-cuda");
  Options options;
  app.add_option("--kernels", options.kernels,
                 "Kernels; answers and the hint are measured with the first")
      ->delimiter(',')
      ->check(CLI::IsMember(kKernelNames))
      ->capture_default_str();
  app.add_option(
         "--measure", options.measurements,
         "What is measured: products alone, answers to queries, packed answers with one level "
         "and two, and\nto requests for several keys, the hint, packing tables; check: "
         "nothing but whether the kernels are right")
      ->delimiter(',')
      ->check(CLI::IsMember(kMeasurements))
      ->capture_default_str();
  app.add_option("--shapes", options.shapes, "Shapes (default: all that there is room for)")
      ->delimiter(',')
      ->check(CLI::IsMember(shape_names()));
  const CLI::Option* batches = app.add_option("--batches", options.batches, "Queries at once")
                                   ->delimiter(',')
                                   ->check(CLI::Range(1, 4096))
                                   ->capture_default_str();
  const CLI::Option* rounds =
      app.add_option("--rounds", options.rounds, "Repetitions, of which the median counts")
          ->check(CLI::Range(1, 1000))
          ->capture_default_str();
  app.add_option("--json-file", options.json_file, "Write the lines there, too");
  app.add_flag("--rehearse", options.rehearsal,
               "Tiny shapes, for an emulated GPU: no time means anything");
  app.callback([&] {
    if (options.rehearsal && batches->count() == 0) options.batches = {1, 4, 33};
    if (options.rehearsal && rounds->count() == 0) options.rounds = 1;
    run(options);
  });
  return parse_and_run(app, argc, argv);
}
