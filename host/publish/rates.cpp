#include "host/publish/rates.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "host/system/processor_name.h"
#include "src/base/errors.h"
#include "src/program/program.h"

namespace blindfuse {
namespace {

constexpr const char* kRatesFormat = "blindfuse-rates/1";

// Far from what any machine has, on both sides. With others, the costs of a layout would leave a
// double, or their column of a table.
constexpr double kRateMin = 1e-15, kRateMax = 1e20;

struct RateMember {
  const char* name;
  double CoreRates::*value;
};
constexpr std::array kRateMembers = {
    RateMember{"scan_alone_bytes_per_second", &CoreRates::scan_alone_bytes_per_second},
    RateMember{"scan_batch_multiply_adds_per_second",
               &CoreRates::scan_batch_multiply_adds_per_second},
    RateMember{"pack_alone_bytes_per_second", &CoreRates::pack_alone_bytes_per_second},
    RateMember{"pack_batch_multiply_adds_per_second",
               &CoreRates::pack_batch_multiply_adds_per_second},
    RateMember{"memory_bytes_per_second", &CoreRates::memory_bytes_per_second},
    RateMember{"second_switch_seconds", &CoreRates::second_switch_seconds},
    RateMember{"second_column_seconds", &CoreRates::second_column_seconds},
    RateMember{"second_traces_seconds", &CoreRates::second_traces_seconds},
    RateMember{"second_short_trace_seconds", &CoreRates::second_short_trace_seconds},
};

struct OriginMember {
  const char* name;
  std::string RatesOrigin::*value;
};
constexpr std::array kOriginMembers = {
    OriginMember{"processor", &RatesOrigin::processor},
    OriginMember{"program", &RatesOrigin::program},
    OriginMember{"kernels", &RatesOrigin::kernels},
};

// The text of a stranger's file for a message: short, on one line, in ASCII.
std::string shown_member(const std::string& name) {
  return nlohmann::json(name.substr(0, 40))
      .dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

class RatesReader {
 public:
  RatesReader(std::string_view text, const std::string& file) : file_(file) {
    if (text.size() > kRatesBytesMax) {
      refuse("has more than " + std::to_string(kRatesBytesMax) + " bytes");
    }
    object_ = nlohmann::json::parse(text, nullptr, false);
    if (!object_.is_object()) refuse("is not an object of JSON");
    if (this->text("format") != kRatesFormat) {
      refuse("has another \"format\" than \"" + std::string(kRatesFormat) + "\"");
    }
  }

  std::string text(const char* name) {
    const nlohmann::json& member = at(name);
    if (!member.is_string()) refuse("has a \"" + std::string(name) + "\" that is not a string");
    return member.get<std::string>();
  }

  double rate(const char* name) {
    const nlohmann::json& member = at(name);
    const double value = member.is_number() ? member.get<double>() : 0;
    const std::string fault = "has a \"" + std::string(name) + "\" that ";
    if (!std::isfinite(value) || value <= 0) refuse(fault + "is not a positive number");
    if (value < kRateMin || value > kRateMax) refuse(fault + "no machine has");
    return value;
  }

  // After all members have been read.
  void end() {
    for (const auto& member : object_.items()) {
      if (std::ranges::find(read_, member.key()) != read_.end()) continue;
      refuse("has the member " + shown_member(member.key()) + ", which this program does not know");
    }
  }

 private:
  const nlohmann::json& at(const char* name) {
    const auto found = object_.find(name);
    if (found == object_.end()) refuse("has no \"" + std::string(name) + "\"");
    read_.emplace_back(name);
    return *found;
  }

  [[noreturn]] void refuse(const std::string& fault) const {
    throw InputError(file_ + " " + fault +
                     "; take the rates.json that `blindfuse plan --calibrate` of the same version "
                     "makes on that machine");
  }

  const std::string& file_;
  nlohmann::json object_;
  std::vector<std::string> read_;
};

}  // namespace

RatesOrigin rates_origin() { return {processor_name(), program_version(), rate_kernels()}; }

std::string serialize_rates(const Rates& rates) {
  nlohmann::ordered_json object = {{"format", kRatesFormat}};
  for (const OriginMember& member : kOriginMembers) {
    object[member.name] = rates.origin.*member.value;
  }
  for (const RateMember& member : kRateMembers) object[member.name] = rates.core.*member.value;
  return object.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

Rates parse_rates(std::string_view text, const std::string& file) {
  RatesReader reader(text, file);
  Rates rates;
  for (const OriginMember& member : kOriginMembers) {
    rates.origin.*member.value = reader.text(member.name);
  }
  for (const RateMember& member : kRateMembers) rates.core.*member.value = reader.rate(member.name);
  reader.end();
  return rates;
}

}  // namespace blindfuse
