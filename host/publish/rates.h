// The rates of a machine, from which plans reckon what a layout costs its server.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "host/engines/core_rates.h"

namespace blindfuse {

// Where rates were measured, and by what. Rates of another origin may be other ones.
struct RatesOrigin {
  std::string processor;  // its model
  std::string program;    // its version
  std::string kernels;    // rate_kernels()

  bool operator==(const RatesOrigin&) const = default;
};

// Of this machine and this program.
RatesOrigin rates_origin();

struct Rates {
  RatesOrigin origin;
  CoreRates core;

  bool operator==(const Rates&) const = default;
};

inline constexpr uint64_t kRatesBytesMax = 16'384;

// An object of JSON with a member "format", the origin's members, and one for each rate, named as
// in CoreRates. Rates keep every bit.
std::string serialize_rates(const Rates& rates);

// Throws InputError, with the name `file`, the member and a cure, if the text is anything else than
// such an object, or if a rate is not a positive number, or is one that no machine has.
Rates parse_rates(std::string_view text, const std::string& file);

}  // namespace blindfuse
