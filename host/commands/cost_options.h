// The options that `plan` and `build` share: how a layout is chosen, and by what rates.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "host/publish/plan_chooser.h"
#include "host/publish/rates.h"

namespace blindfuse {

std::string preference_name(Preference preference);

struct CostOptions {
  std::optional<Preference> prefer;
  bool calibrate = false;
  std::string rates_file;  // empty: the rates of this machine

  void add_to(CLI::App& command);

  // Read from the file, or those of this machine, which are measured if they are not known. Throws
  // InputError if the file is not one of rates.
  Rates rates() const;

  // The wish of a build. Asks for rates only if the preference needs them.
  std::optional<PlanWish> wish() const;
};

}  // namespace blindfuse
