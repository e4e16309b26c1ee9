// A few keys of the database, with the hashes of their values, for `inspect --verify`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "host/publish/input.h"
#include "src/protocol/sha256.h"

namespace blindfuse {

struct Sample {
  std::string key;  // bytes; decimal digits in an index database
  Sha256Digest value{};

  bool operator==(const Sample&) const = default;
};

// Takes up to kSampleCount keys. They are the same for the same map in any order. `input` as
// read_input returned it.
std::vector<Sample> take_samples(const Input& input, DatabaseKind kind, const Salt& salt);

// Writes JSON. The parser throws InputError.
std::string serialize_samples(const std::vector<Sample>& samples);
std::vector<Sample> parse_samples(std::string_view text);

}  // namespace blindfuse
