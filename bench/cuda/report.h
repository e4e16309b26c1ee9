// Reports measurements: a line of JSON each, and the best in a few words for people.
#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "bench/cuda/options.h"
#include "bench/cuda/yardsticks.h"
#include "cuda/checks/product_check.h"

namespace blindfuse::bench {

// A scan with queries that are on the device and cut already.
struct ScanTimes {
  double seconds = 0;
  Rates rates;                          // of the same rounds
  std::optional<double> seconds_alone;  // of one query, with the fastest kernel
};

// The products of a batch, compared with the CPU's.
struct Check {
  size_t product_count = 0;
  ProductDifference difference;
  // The first word that differs, if there is one.
  uint32_t found = 0;
  uint32_t expected = 0;
};

// Packed queries to packed responses.
struct PipelineTimes {
  uint64_t packs = 0;  // whose tables they are packed with, under clients' secrets; 0: not so
  uint32_t levels = 1;
  uint64_t buckets = 1;  // of each query
  double seconds = 0;    // from the end of one batch to that of the next
  uint64_t query_bytes = 0;
  uint64_t response_bytes = 0;
  double sent = 0;                     // as in Rates
  std::optional<double> scan_seconds;  // of the same kernel and batch
};

struct HintTimes {
  uint32_t dimension = 0;  // n
  unsigned threads = 0;
  double seconds = 0;
  double sent = 0;
};

// Packing tables and masks.
struct PackTimes {
  uint32_t packs = 0;
  double seconds = 0;          // until all are made, on the device
  double seconds_to_host = 0;  // from there on
};

class Report {
 public:
  // Throws InputError when options.json_file cannot be written.
  Report(const Options& options, const std::string& device);

  // Products that differ are wrong.
  void print(const Shape& shape, const std::string& kernel, size_t batch, const Check& check);
  void print(const Shape& shape, const std::string& kernel, size_t batch, const ScanTimes& times);
  void print(const Shape& shape, const std::string& kernel, size_t batch,
             const PipelineTimes& times);
  void print(const Shape& shape, const std::string& kernel, const HintTimes& times);
  void print(const Shape& shape, const std::string& kernel, const PackTimes& times);

  // Prints, in one line for people that begins with "figure: ", the best of each measurement until
  // now, and of each kernel that differs from the CPU the worst.
  void print_figure();
  // Prints a line to standard error that begins with "WRONG: ", and counts it.
  void say_wrong(const std::string& what);
  size_t wrong_count() const { return wrong_count_; }
  // True if anything has been measured. A check is not a measurement.
  bool is_empty() const { return !has_measured_; }

 private:
  // Prints a line of JSON. batch: vectors that are multiplied at once, of the hint and of packs,
  // too.
  void print_line(const char* measurement, const Shape& shape, const std::string& kernel,
                  size_t batch, const nlohmann::json& figures);
  // Adds the figure of a measurement.
  void add_figure(const std::string& name, double score, const std::string& text);
  // Adds the figure, or replaces that of the same name if its score is lower.
  void keep_figure(const std::string& name, double score, const std::string& text);

  const std::string json_path_;
  std::ofstream json_file_;
  const std::string device_;
  struct Figure {
    double score;
    std::string text;
  };
  std::map<std::string, Figure> figures_;
  bool has_measured_ = false;
  size_t wrong_count_ = 0;
};

}  // namespace blindfuse::bench
