#include "bench/cuda/report.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>

#include "cuda/device/check.h"
#include "src/arithmetic/packing_table.h"
#include "src/base/errors.h"

namespace blindfuse::bench {
namespace {

constexpr const char* kScanHead =
    "\nThe scan alone. Effective bytes count the matrix once a query; scan/read: the rate of one "
    "pass over the matrix\nto that of plain reads; multiply-adds are of bytes, four for a word of "
    "a "
    "query; x one: time to that of one query.\n"
    "shape    kernel  batch         time   effective        read scan/read  mult-adds      cuBLAS  "
    "ratio  x one        copy       PCIe";
constexpr const char* kPipelineHead =
    "\nPacked queries to packed responses, two batches in flight, every product checked; bound: "
    "the transfer, or\nthe scan if it was measured and takes longer.";
constexpr const char* kPackedHead =
    "\nThe same with packing keys, to responses that are packed under clients' secrets; the bound "
    "is that of the\nscan and the transfer alone.";
constexpr const char* kTwoLevelHead =
    "\nThe same with two levels: of each response, the words of one shard, packed again.";
constexpr const char* kBucketHead =
    "\nRequests for several keys: packed responses to queries with words for each bucket; bound: "
    "the transfer.";
constexpr const char* kPipelineColumns =
    "shape    kernel  batch   time/batch    queries/s   effective      sent       PCIe  bound "
    "ratio";
constexpr const char* kHintHead =
    "\nThe hint: n vectors, expanded on the host while the device multiplies; keystream: the "
    "host's "
    "part alone.\n"
    "shape    kernel      n threads       time  keystream  ratio   mult-adds      sent       PCIe";

constexpr const char* kPackHead =
    "\nPacking tables and masks: made on the device, the product and everything behind it, and "
    "brought to the host.\n"
    "shape    kernel  packs       made  mult-adds    to host      bytes";

using Value = std::optional<double>;

Value ratio(double value, double to) { return to > 0 ? Value(value / to) : std::nullopt; }
Value if_any(double value) { return value > 0 ? Value(value) : std::nullopt; }
nlohmann::json json_of(const Value& value) {
  return value ? nlohmann::json(*value) : nlohmann::json();
}

// A cell of a table: the value in units of `unit`, or a dash.
std::string cell(const Value& value, double unit, const char* name, int decimals = 2) {
  if (!value) return "-";
  char text[64];
  std::snprintf(text, sizeof text, "%.*f%s", decimals, *value / unit, name);
  return text;
}
std::string milliseconds(double seconds) { return cell(seconds, 1e-3, " ms", 3); }
std::string gigabytes(double rate) { return cell(if_any(rate), 1e9, " GB/s", 1); }
std::string tera(double rate) { return cell(if_any(rate), 1e12, " T/s", 1); }
std::string plain(const Value& value) { return cell(value, 1, ""); }

double bytes_of(const Shape& shape) { return static_cast<double>(shape.rows * shape.columns); }

// What a measurement of answers is called.
struct PipelineNames {
  const char* measurement;
  const char* figure;
  const char* head;
};
PipelineNames names_of(const PipelineTimes& times) {
  if (times.packs == 0) return {"pipeline", " answers", kPipelineHead};
  if (times.levels > 1) return {"two_level_pipeline", " two levels", kTwoLevelHead};
  if (times.buckets > 1) return {"bucket_pipeline", " requests", kBucketHead};
  return {"packed_pipeline", " packed", kPackedHead};
}

// CUDA's 13020 is 13.2.
std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

}  // namespace

Report::Report(const Options& options, const std::string& device)
    : json_(options.json), json_path_(options.json_file), device_(device) {
  BLINDFUSE_CUDA(cudaDriverGetVersion(&driver_version_));
  BLINDFUSE_CUDA(cudaRuntimeGetVersion(&runtime_version_));
  if (!json_path_.empty()) {
    json_file_.open(json_path_);
    if (!json_file_) throw InputError("cannot write " + json_path_);
  }
  if (!json_) {
    std::printf("%s; CUDA %s of the driver, %s of this program\n", device_.c_str(),
                version_text(driver_version_).c_str(), version_text(runtime_version_).c_str());
  }
}

void Report::print(const Shape& shape, const std::string& kernel, size_t batch,
                   const Check& check) {
  nlohmann::json line = this->line("check", shape, kernel);
  line["batch"] = batch;
  line["products"] = check.product_count;
  const ProductDifference& difference = check.difference;
  line["differing"] = difference.count;
  if (difference.count > 0) {
    line["query"] = difference.query;
    line["column"] = difference.column;
    line["found"] = check.found;
    line["expected"] = check.expected;
  }
  print_json(line);
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
  const auto queries = static_cast<double>(batch);
  const double scanned = bytes_of(shape) / times.seconds;
  const double effective = scanned * queries;
  const double multiplied = 4 * effective;
  const Value alone =
      times.seconds_alone ? ratio(times.seconds, *times.seconds_alone) : std::nullopt;
  nlohmann::json line = this->line("scan", shape, kernel);
  line["batch"] = batch;
  line["seconds"] = times.seconds;
  line["effective_bytes_per_second"] = effective;
  line["read_bytes_per_second"] = rates.read;
  line["ratio"] = json_of(ratio(effective, rates.read));
  line["scan_ratio"] = json_of(ratio(scanned, rates.read));
  line["byte_multiply_adds_per_second"] = multiplied;
  line["peak_byte_multiply_adds_per_second"] = json_of(if_any(rates.multiplied));
  line["instruction_peak_ratio"] = json_of(ratio(multiplied, rates.multiplied));
  line["times_one_query"] = json_of(alone);
  line["copy_bytes_per_second"] = rates.copied;
  line["pcie_bytes_per_second"] = rates.sent;
  print_json(line);
  const std::string name = std::string(shape.name) + " " + kernel;
  if (batch == 1) {
    add_figure(name + ", 1 query", 1, plain(ratio(scanned, rates.read)) + " of reads");
  }
  add_figure(name + ", best", effective,
             cell(effective, 1e12, " TB/s", 1) + " with " + std::to_string(batch));
  if (json_) return;
  print_head(kScanHead);
  std::printf("%-8s %-7s %5zu %12s %11s %11s %9s %10s %11s %6s %6s %11s %10s\n",
              std::string(shape.name).c_str(), kernel.c_str(), batch,
              milliseconds(times.seconds).c_str(), gigabytes(effective).c_str(),
              gigabytes(rates.read).c_str(), plain(ratio(scanned, rates.read)).c_str(),
              tera(multiplied).c_str(), tera(rates.multiplied).c_str(),
              plain(ratio(multiplied, rates.multiplied)).c_str(), plain(alone).c_str(),
              gigabytes(rates.copied).c_str(), gigabytes(rates.sent).c_str());
  std::fflush(stdout);
}

void Report::print(const Shape& shape, const std::string& kernel, size_t batch,
                   const PipelineTimes& times) {
  const auto queries = static_cast<double>(batch);
  const auto query_bytes = static_cast<double>(times.query_bytes);
  const double answered = queries / times.seconds;
  const double sent = answered * query_bytes;
  double bound = times.sent / query_bytes;
  if (times.scan_seconds) bound = std::min(bound, queries / *times.scan_seconds);
  const PipelineNames names = names_of(times);
  nlohmann::json line = this->line(names.measurement, shape, kernel);
  if (times.packs > 0) line["packs"] = times.packs;
  if (times.buckets > 1) line["buckets"] = times.buckets;
  line["batch"] = batch;
  line["seconds"] = times.seconds;
  line["queries_per_second"] = answered;
  line["effective_bytes_per_second"] = answered * bytes_of(shape);
  line["query_bytes"] = times.query_bytes;
  line["response_bytes"] = times.response_bytes;
  line["sent_bytes_per_second"] = sent;
  line["received_bytes_per_second"] = answered * static_cast<double>(times.response_bytes);
  line["pcie_bytes_per_second"] = times.sent;
  line["scan_seconds"] = json_of(times.scan_seconds);
  line["bound_queries_per_second"] = bound;
  line["bound_ratio"] = json_of(ratio(answered, bound));
  print_json(line);
  add_figure(std::string(shape.name) + names.figure, answered,
             cell(answered, 1, "", 0) + " queries/s with " + std::to_string(batch));
  if (json_) return;
  print_head(names.head, kPipelineColumns);
  std::printf("%-8s %-7s %5zu %12s %12.0f %11s %9s %10s %6s %5s\n", std::string(shape.name).c_str(),
              kernel.c_str(), batch, milliseconds(times.seconds).c_str(), answered,
              gigabytes(answered * bytes_of(shape)).c_str(), gigabytes(sent).c_str(),
              gigabytes(times.sent).c_str(),
              times.scan_seconds && *times.scan_seconds > query_bytes * queries / times.sent
                  ? "scan"
                  : "PCIe",
              plain(ratio(answered, bound)).c_str());
  std::fflush(stdout);
}

void Report::print(const Shape& shape, const std::string& kernel, const HintTimes& times) {
  const auto dimension = static_cast<double>(times.dimension);
  const double multiplied = 4 * dimension * bytes_of(shape) / times.seconds;
  const double sent = 4 * dimension * static_cast<double>(shape.rows) / times.seconds;
  const Value keystream = ratio(times.seconds, times.keystream_seconds);
  nlohmann::json line = this->line("hint", shape, kernel);
  line["dimension"] = times.dimension;
  line["threads"] = times.threads;
  line["seconds"] = times.seconds;
  line["keystream_seconds"] = times.keystream_seconds;
  line["keystream_ratio"] = json_of(keystream);
  line["byte_multiply_adds_per_second"] = multiplied;
  line["sent_bytes_per_second"] = sent;
  line["pcie_bytes_per_second"] = times.sent;
  print_json(line);
  add_figure("hint", 1, cell(times.seconds, 1, " s"));
  if (json_) return;
  print_head(kHintHead);
  std::printf("%-8s %-7s %5u %7u %10s %10s %6s %11s %9s %10s\n", std::string(shape.name).c_str(),
              kernel.c_str(), times.dimension, times.threads, cell(times.seconds, 1, " s").c_str(),
              cell(times.keystream_seconds, 1, " s").c_str(), plain(keystream).c_str(),
              tera(multiplied).c_str(), gigabytes(sent).c_str(), gigabytes(times.sent).c_str());
  std::fflush(stdout);
}

void Report::print(const Shape& shape, const std::string& kernel, const PackTimes& times) {
  const double multiplied =
      4 * static_cast<double>(ring::kDimension) * bytes_of(shape) / times.seconds;
  const double brought = static_cast<double>(times.packs * kTableBytes) / times.seconds_to_host;
  nlohmann::json line = this->line("packs", shape, kernel);
  line["packs"] = times.packs;
  line["seconds"] = times.seconds;
  line["byte_multiply_adds_per_second"] = multiplied;
  line["seconds_to_host"] = times.seconds_to_host;
  line["received_bytes_per_second"] = brought;
  print_json(line);
  add_figure("packs", 1, cell(times.seconds, 1, " s"));
  if (json_) return;
  print_head(kPackHead);
  std::printf("%-8s %-7s %5u %10s %10s %10s %10s\n", std::string(shape.name).c_str(),
              kernel.c_str(), times.packs, cell(times.seconds, 1, " s").c_str(),
              tera(multiplied).c_str(), cell(times.seconds_to_host, 1, " s").c_str(),
              gigabytes(brought).c_str());
  std::fflush(stdout);
}

nlohmann::json Report::line(const char* measurement, const Shape& shape,
                            const std::string& kernel) const {
  return {
      {"measurement", measurement},
      {"kernel", kernel},
      {"shape", shape.name},
      {"rows", shape.rows},
      {"columns", shape.columns},
      {"device", device_},
      {"driver_version", version_text(driver_version_)},
      {"runtime_version", version_text(runtime_version_)},
  };
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
  if (json_ || figures_.empty()) return;
  std::string all;
  for (const auto& [name, figure] : figures_) {
    all += (all.empty() ? "" : "; ") + name + ": " + figure.text;
  }
  std::printf("figure: %s\n", all.c_str());
  std::fflush(stdout);
}

void Report::print_head(const char* head, const char* columns) {
  if (head != head_) {
    std::puts(head);
    if (columns != nullptr) std::puts(columns);
  }
  head_ = head;
}

void Report::print_json(const nlohmann::json& line) {
  if (json_) {
    std::puts(line.dump().c_str());
    std::fflush(stdout);
  }
  if (json_path_.empty()) return;
  json_file_ << line.dump() << std::endl;
  if (!json_file_) throw InputError("cannot write " + json_path_);
}

}  // namespace blindfuse::bench
