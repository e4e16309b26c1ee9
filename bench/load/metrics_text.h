// What a server says of itself on /metrics: Prometheus' text format, version 0.0.4.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace blindfuse::load {

using Labels = std::map<std::string, std::string>;

class MetricsText {
 public:
  // Throws BadInput, naming the line, for text that is not in that format.
  static MetricsText parse(std::string_view text);

  // The sum of all samples of this name that have all of these labels; nothing when there is none.
  std::optional<double> sum(const std::string& name, const Labels& labels = {}) const;

 private:
  struct Sample {
    Labels labels;
    double value = 0;
  };
  std::map<std::string, std::vector<Sample>> samples_;
};

}  // namespace blindfuse::load
