#include "host/commands/cost_options.h"

#include <array>
#include <vector>

#include "host/publish/rates_cache.h"
#include "src/system/file.h"

namespace blindfuse {
namespace {

constexpr std::array kPreferences = {Preference::kBytes, Preference::kSpeed, Preference::kBalanced};

}  // namespace

std::string preference_name(Preference preference) {
  switch (preference) {
    case Preference::kFewPacks:
      return "";  // what is chosen without the option
    case Preference::kBytes:
      return "bytes";
    case Preference::kSpeed:
      return "speed";
    case Preference::kBalanced:
      return "balanced";
  }
  return "";
}

void CostOptions::add_to(CLI::App& command) {
  command.option_defaults()->group("Choice of the layout");
  std::vector<std::string> names;
  for (const Preference each : kPreferences) names.push_back(preference_name(each));
  command
      .add_option_function<std::string>(
          "--prefer",
          [this](const std::string& chosen) {
            for (const Preference each : kPreferences) {
              if (chosen == preference_name(each)) prefer = each;
            }
          },
          "bytes: the fewest bytes for a client. speed: the least time of the server in full "
          "batches, with at most twice the fewest bytes. balanced: the least money for bytes and "
          "processor time. Without --levels, layouts of one and of two levels compete (default: "
          "nearly the fewest bytes, with few packing tables and one level)")
      ->check(CLI::IsMember(names));
  CLI::Option* again = command.add_flag(
      "--calibrate", calibrate,
      "Measure the rates of this machine again, which takes a second or two. They are kept in "
      "$XDG_CACHE_HOME/blindfuse/rates.json or ~/.cache/blindfuse/rates.json");
  command
      .add_option("--rates", rates_file,
                  "Plan for the machine on which this file of rates was made by --calibrate")
      ->type_name("FILE")
      ->excludes(again);
  command.option_defaults()->group("Options");
}

Rates CostOptions::rates() const {
  if (rates_file.empty()) return RatesCache(rates_cache_file()).get(calibrate);
  return parse_rates(read_text_file(rates_file, kRatesBytesMax), rates_file);
}

std::optional<PlanWish> CostOptions::wish() const {
  const bool needs_rates = prefer && *prefer != Preference::kBytes;
  // A measurement that was asked for is made even if nothing depends on it, and a file is checked.
  const bool wants_rates = needs_rates || calibrate || !rates_file.empty();
  const std::optional<Rates> found = wants_rates ? std::optional(rates()) : std::nullopt;
  if (!prefer) return std::nullopt;
  return PlanWish{*prefer, needs_rates ? std::optional(found->core) : std::nullopt};
}

}  // namespace blindfuse
