// The keys to ask for, and their known values.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "bench/load/options.h"
#include "src/arithmetic/layout.h"

namespace blindfuse::load {

struct KnownKey {
  // Whether this is the right answer of the database for the key.
  bool is_met_by(const std::optional<std::string>& found) const {
    return found.has_value() == is_there && (!value || found == value);
  }

  std::string key;
  bool is_there = true;
  std::optional<std::string> value;  // where it is known
};

class KeySource {
 public:
  // Reads options.expect_file. Throws InputError when it cannot be read, or is not what it should
  // be.
  explicit KeySource(const Options& options);

  // One of the file's keys, in turn; without a file a random one.
  KnownKey draw(const Layout& layout, std::mt19937_64& random);

 private:
  std::vector<KnownKey> known_;
  size_t next_ = 0;
};

}  // namespace blindfuse::load
