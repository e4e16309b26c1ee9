#include "bench/cuda/report.h"

#include <algorithm>
#include <cstdio>

#include "src/arithmetic/packing_table.h"
#include "src/base/errors.h"

namespace blindfuse::bench {
namespace {

using Value = std::optional<double>;

Value ratio(double value, double to) { return to > 0 ? Value(value / to) : std::nullopt; }
Value if_any(double value) { return value > 0 ? Value(value) : std::nullopt; }
nlohmann::json json_of(const Value& value) {
  return value ? nlohmann::json(*value) : nlohmann::json();
}

// The value in units of `unit`, or a dash.
std::string cell(const Value& value, double unit, const char* name, int decimals = 2) {
  if (!value) return "-";
  char text[64];
  std::snprintf(text, sizeof text, "%.*f%s", decimals, *value / unit, name);
  return text;
}

double bytes_of(const Shape& shape) { return static_cast<double>(shape.rows * shape.columns); }

struct PipelineNames {
  const char* measurement;
  const char* figure;
};
PipelineNames names_of(const PipelineTimes& times) {
  if (times.packs == 0) return {"pipeline", " answers"};
  if (times.levels > 1) return {"two_level_pipeline", " two levels"};
  if (times.buckets > 1) return {"bucket_pipeline", " requests"};
  return {"packed_pipeline", " packed"};
}

}  // namespace

Report::Report(const Options& options, const std::string& device)
    : json_path_(options.json_file), device_(device) {
  if (!json_path_.empty()) {
    json_file_.open(json_path_);
    if (!json_file_) throw InputError("cannot write " + json_path_);
  }
}

void Report::print(const Shape& shape, const std::string& kernel, size_t batch,
                   const Check& check) {
  const ProductDifference& difference = check.difference;
  nlohmann::json line = {{"products", check.product_count}, {"differing", difference.count}};
  if (difference.count > 0) {
    line.update({{"query", difference.query},
                 {"column", difference.column},
                 {"found", check.found},
                 {"expected", check.expected}});
  }
  print_line("check", shape, kernel, batch, line);
  if (difference.count == 0) return;
  const std::string where =
      std::to_string(difference.count) + " of " + std::to_string(check.product_count) +
      " products differ from the CPU's with batch " + std::to_string(batch) + " on " +
      std::to_string(shape.rows) + " x " + std::to_string(shape.columns) +
      "; the first is that of query " + std::to_string(difference.query) + " with column " +
      std::to_string(difference.column) + ", " + std::to_string(check.found) + " instead of " +
      std::to_string(check.expected);
  say_wrong(kernel + ": " + where);
  keep_figure(kernel, static_cast<double>(difference.count), where);
}

void Report::say_wrong(const std::string& what) {
  ++wrong_count_;
  std::fprintf(stderr, "WRONG: %s\n", what.c_str());
}

void Report::print(const Shape& shape, const std::string& kernel, size_t batch,
                   const ScanTimes& times) {
  const Rates& rates = times.rates;
  const double scanned = bytes_of(shape) / times.seconds;
  const double effective = scanned * static_cast<double>(batch);
  const double multiplied = 4 * effective;
  const Value alone =
      times.seconds_alone ? ratio(times.seconds, *times.seconds_alone) : std::nullopt;
  print_line("scan", shape, kernel, batch,
             {{"seconds", times.seconds},
              {"effective_bytes_per_second", effective},
              {"read_bytes_per_second", rates.read},
              {"scan_ratio", json_of(ratio(scanned, rates.read))},
              {"byte_multiply_adds_per_second", multiplied},
              {"peak_byte_multiply_adds_per_second", json_of(if_any(rates.multiplied))},
              {"instruction_peak_ratio", json_of(ratio(multiplied, rates.multiplied))},
              {"times_one_query", json_of(alone)},
              {"pcie_bytes_per_second", rates.sent}});
  const std::string name = std::string(shape.name) + " " + kernel;
  if (batch == 1) {
    add_figure(name + ", 1 query", 1, cell(ratio(scanned, rates.read), 1, " of reads", 2));
  }
  add_figure(name + ", best", effective,
             cell(effective, 1e12, " TB/s", 1) + " with " + std::to_string(batch));
}

void Report::print(const Shape& shape, const std::string& kernel, size_t batch,
                   const PipelineTimes& times) {
  const auto queries = static_cast<double>(batch);
  const auto query_bytes = static_cast<double>(times.query_bytes);
  const double answered = queries / times.seconds;
  // The transfer, or the scan if it was measured and takes longer.
  double bound = times.sent / query_bytes;
  if (times.scan_seconds) bound = std::min(bound, queries / *times.scan_seconds);
  const PipelineNames names = names_of(times);
  print_line(names.measurement, shape, kernel, batch,
             {{"packs", times.packs},
              {"buckets", times.buckets},
              {"seconds", times.seconds},
              {"queries_per_second", answered},
              {"effective_bytes_per_second", answered * bytes_of(shape)},
              {"query_bytes", times.query_bytes},
              {"response_bytes", times.response_bytes},
              {"pcie_bytes_per_second", times.sent},
              {"scan_seconds", json_of(times.scan_seconds)},
              {"bound_ratio", json_of(ratio(answered, bound))}});
  add_figure(std::string(shape.name) + names.figure, answered,
             cell(answered, 1, "", 0) + " queries/s with " + std::to_string(batch));
}

void Report::print(const Shape& shape, const std::string& kernel, const HintTimes& times) {
  const double multiplied =
      4 * static_cast<double>(times.dimension) * bytes_of(shape) / times.seconds;
  print_line("hint", shape, kernel, times.dimension,
             {{"threads", times.threads},
              {"seconds", times.seconds},
              {"byte_multiply_adds_per_second", multiplied},
              {"pcie_bytes_per_second", times.sent}});
  add_figure("hint", 1, cell(times.seconds, 1, " s"));
}

void Report::print(const Shape& shape, const std::string& kernel, const PackTimes& times) {
  const double multiplied =
      4 * static_cast<double>(ring::kDimension) * bytes_of(shape) / times.seconds;
  print_line("packs", shape, kernel, ring::kDimension,
             {{"packs", times.packs},
              {"seconds", times.seconds},
              {"byte_multiply_adds_per_second", multiplied},
              {"seconds_to_host", times.seconds_to_host}});
  add_figure("packs", 1, cell(times.seconds, 1, " s"));
}

void Report::print_line(const char* measurement, const Shape& shape, const std::string& kernel,
                        size_t batch, const nlohmann::json& figures) {
  nlohmann::json line = {
      {"measurement", measurement}, {"kernel", kernel}, {"shape", shape.name}, {"rows", shape.rows},
      {"columns", shape.columns},   {"batch", batch},   {"device", device_}};
  line.update(figures);
  std::puts(line.dump().c_str());
  std::fflush(stdout);
  if (json_path_.empty()) return;
  json_file_ << line.dump() << std::endl;
  if (!json_file_) throw InputError("cannot write " + json_path_);
}

void Report::add_figure(const std::string& name, double score, const std::string& text) {
  has_measured_ = true;
  keep_figure(name, score, text);
}

void Report::keep_figure(const std::string& name, double score, const std::string& text) {
  Figure& figure = figures_.try_emplace(name, Figure{score, text}).first->second;
  if (score > figure.score) figure = {score, text};
}

void Report::print_figure() {
  if (figures_.empty()) return;
  std::string all;
  for (const auto& [name, figure] : figures_) {
    all += (all.empty() ? "" : "; ") + name + ": " + figure.text;
  }
  std::printf("figure: %s\n", all.c_str());
  std::fflush(stdout);
}

}  // namespace blindfuse::bench
