// The keys to ask for, and what is known of their values.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "bench/load/options.h"
#include "src/arithmetic/layout.h"

namespace blindfuse::load {

// What the value of a key has to be.
struct Expectation {
  enum class Kind { kValue, kThere, kNotThere, kAnything };

  bool is_met_by(const std::optional<std::string>& found) const;
  // "the value of the file", "not there"
  std::string text() const;

  Kind kind = Kind::kAnything;
  std::string value;
};

struct KnownKey {
  std::string key;
  Expectation expectation;
};

class KeySource {
 public:
  // Reads options.keys_file and options.expect_file. Throws BadInput when they cannot be read, or
  // are not what they should be.
  explicit KeySource(const Options& options);

  // One of the files' keys, in turn; without files a random one.
  KnownKey draw(const Layout& layout, std::mt19937_64& random);

 private:
  std::vector<KnownKey> known_;
  std::optional<size_t> next_;
};

}  // namespace blindfuse::load
