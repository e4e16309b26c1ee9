#include "bench/load/key_source.h"

#include <string_view>

#include "client/key_text.h"
#include "src/base/errors.h"
#include "src/system/file.h"

namespace blindfuse::load {
namespace {

constexpr uint64_t kFileBytesMax = uint64_t{4} << 30;

std::string decoded(std::string_view text, const std::string& encoding, const std::string& place) {
  try {
    return decode_key(text, key_encodings().at(encoding));
  } catch (const InputError& error) {
    throw InputError(place + ": " + error.what());
  }
}

}  // namespace

KeySource::KeySource(const Options& options) {
  if (options.expect_file.empty()) return;
  const std::string text = read_file(options.expect_file, kFileBytesMax);
  std::string_view rest = text;
  for (size_t number = 1; !rest.empty(); ++number) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    const std::string place = options.expect_file.string() + ":" + std::to_string(number);
    const size_t tab = line.find('\t');
    if (tab == std::string_view::npos) {
      throw InputError(place + ": there is no tab; a line is KEY<tab>VALUE");
    }
    known_.push_back({decoded(line.substr(0, tab), options.key_encoding, place), true,
                      decoded(line.substr(tab + 1), options.value_encoding, place)});
  }
  if (known_.empty()) throw InputError(options.expect_file.string() + " has no keys");
}

KnownKey KeySource::draw(const Layout& layout, std::mt19937_64& random) {
  if (!known_.empty()) return known_[next_++ % known_.size()];
  if (layout.kind == DatabaseKind::kIndex) {
    return {std::to_string(random() % layout.key_count), true, std::nullopt};
  }
  std::string key = "blindfuse-bench-load/not-there/";
  for (int i = 0; i < 2; ++i) key += std::to_string(random());
  return {std::move(key), false, std::nullopt};
}

}  // namespace blindfuse::load
