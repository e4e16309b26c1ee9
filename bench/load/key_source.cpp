#include "bench/load/key_source.h"

#include <map>
#include <string_view>

#include "client/key_text.h"
#include "src/base/errors.h"
#include "src/system/file.h"

namespace blindfuse::load {
namespace {

constexpr uint64_t kFileBytesMax = uint64_t{4} << 30;

// Calls take(line, "FILE:NUMBER") for each line that is not empty.
template <class Take>
void for_each_line(const std::filesystem::path& path, const Take& take) {
  const std::string text = read_file(path, kFileBytesMax);
  std::string_view rest = text;
  for (size_t number = 1; !rest.empty(); ++number) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) take(line, path.string() + ":" + std::to_string(number));
  }
}

std::string decoded(std::string_view text, const std::string& encoding, const std::string& place) {
  try {
    return decode_key(text, key_encodings().at(encoding));
  } catch (const BadInput& error) {
    throw BadInput(place + ": " + error.what());
  }
}

std::map<std::string, std::string> read_truth(const Options& options) {
  std::map<std::string, std::string> truth;
  for_each_line(options.expect_file, [&](std::string_view line, const std::string& place) {
    const size_t tab = line.find('\t');
    if (tab == std::string_view::npos) {
      throw BadInput(place + ": there is no tab; a line is KEY<tab>VALUE");
    }
    truth[decoded(line.substr(0, tab), options.key_encoding, place)] =
        decoded(line.substr(tab + 1), options.value_encoding, place);
  });
  return truth;
}

}  // namespace

bool Expectation::is_met_by(const std::optional<std::string>& found) const {
  switch (kind) {
    case Kind::kValue:
      return found == value;
    case Kind::kThere:
      return found.has_value();
    case Kind::kNotThere:
      return !found.has_value();
    case Kind::kAnything:
      break;
  }
  return true;
}

std::string Expectation::text() const {
  switch (kind) {
    case Kind::kValue:
      return "the value of the file";
    case Kind::kThere:
      return "there";
    case Kind::kNotThere:
      return "not there";
    case Kind::kAnything:
      break;
  }
  return "anything";
}

KeySource::KeySource(const Options& options) {
  using Kind = Expectation::Kind;
  std::map<std::string, std::string> truth;
  if (!options.expect_file.empty()) truth = read_truth(options);
  if (options.keys_file.empty()) {
    for (auto& [key, value] : truth) known_.push_back({key, {Kind::kValue, std::move(value)}});
  } else {
    const Expectation otherwise{options.epoch_changes ? Kind::kAnything : Kind::kThere, ""};
    for_each_line(options.keys_file, [&](std::string_view line, const std::string& place) {
      std::string key = decoded(line, options.key_encoding, place);
      const auto found = truth.find(key);
      Expectation expected =
          found == truth.end() ? otherwise : Expectation{Kind::kValue, found->second};
      known_.push_back({std::move(key), std::move(expected)});
    });
  }
  const auto& file = options.keys_file.empty() ? options.expect_file : options.keys_file;
  if (!file.empty() && known_.empty()) throw BadInput(file.string() + " has no keys");
}

KnownKey KeySource::draw(const Layout& layout, std::mt19937_64& random) {
  using Kind = Expectation::Kind;
  if (!known_.empty()) {
    // From a place that differs from process to process on, so that all come up.
    if (!next_) next_ = random() % known_.size();
    return known_[(*next_)++ % known_.size()];
  }
  if (layout.kind == DatabaseKind::kIndex) {
    return {std::to_string(random() % layout.key_count), {Kind::kThere, ""}};
  }
  std::string key = "blindfuse-bench-load/not-there/";
  for (int i = 0; i < 2; ++i) key += std::to_string(random());
  return {std::move(key), {Kind::kNotThere, ""}};
}

}  // namespace blindfuse::load
