#include "bench/load/metrics_text.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "src/base/errors.h"

namespace blindfuse::load {
namespace {

bool is_name_character(char c, bool first) {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':';
  return letter || (!first && c >= '0' && c <= '9');
}

// One line, from left to right.
class LineReader {
 public:
  LineReader(std::string_view rest, size_t number) : rest_(rest), number_(number) {}

  std::string name() {
    size_t length = 0;
    while (length < rest_.size() && is_name_character(rest_[length], length == 0)) ++length;
    if (length == 0) fail("has no name where one belongs");
    return std::string(take(length));
  }

  bool skip(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  void skip_blanks() {
    while (skip(' ') || skip('\t')) {
    }
  }

  Labels labels() {
    Labels labels;
    skip_blanks();
    if (!skip('{')) return labels;
    for (;;) {
      skip_blanks();
      if (skip('}')) return labels;
      std::string label = name();
      if (!skip('=')) fail("has a label without a value");
      labels[std::move(label)] = quoted();
      skip_blanks();
      if (skip(',')) continue;
      if (!skip('}')) fail("has labels that are not closed");
      return labels;
    }
  }

  double number() {
    const std::string_view text = word();
    if (text == "+Inf" || text == "Inf") return std::numeric_limits<double>::infinity();
    if (text == "-Inf") return -std::numeric_limits<double>::infinity();
    if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
    double value = 0;
    const std::string_view digits = text.starts_with('+') ? text.substr(1) : text;
    const auto [end, error] = std::from_chars(digits.begin(), digits.end(), value);
    if (error != std::errc() || end != digits.end()) fail("has no number where one belongs");
    return value;
  }

  bool at_end() const { return rest_.empty(); }

  [[noreturn]] void fail(const std::string& what) const {
    throw BadInput("line " + std::to_string(number_) + " of the metrics " + what);
  }

 private:
  std::string_view take(size_t length) {
    const std::string_view taken = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return taken;
  }

  std::string_view word() { return take(std::min(rest_.find_first_of(" \t"), rest_.size())); }

  std::string quoted() {
    if (!skip('"')) fail("has a label whose value is not in quotes");
    std::string text;
    while (!skip('"')) {
      if (rest_.empty()) fail("ends within quotes");
      char c = take(1)[0];
      if (c == '\\') {
        if (rest_.empty()) fail("ends within quotes");
        c = take(1)[0];
        if (c == 'n') c = '\n';
      }
      text += c;
    }
    return text;
  }

  std::string_view rest_;
  const size_t number_;
};

}  // namespace

MetricsText MetricsText::parse(std::string_view text) {
  MetricsText metrics;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    LineReader reader(line, number);
    reader.skip_blanks();
    if (reader.at_end() || reader.skip('#')) continue;
    const std::string name = reader.name();
    Sample sample;
    sample.labels = reader.labels();
    reader.skip_blanks();
    sample.value = reader.number();
    reader.skip_blanks();
    if (!reader.at_end()) reader.number();  // when it was taken
    reader.skip_blanks();
    if (!reader.at_end()) reader.fail("goes on after its end");
    metrics.samples_[name].push_back(std::move(sample));
  }
  return metrics;
}

std::optional<double> MetricsText::sum(const std::string& name, const Labels& labels) const {
  const auto found = samples_.find(name);
  if (found == samples_.end()) return std::nullopt;
  std::optional<double> sum;
  for (const Sample& sample : found->second) {
    const bool wanted = std::ranges::all_of(labels, [&](const auto& label) {
      const auto has = sample.labels.find(label.first);
      return has != sample.labels.end() && has->second == label.second;
    });
    if (wanted) sum = sum.value_or(0) + sample.value;
  }
  return sum;
}

}  // namespace blindfuse::load
