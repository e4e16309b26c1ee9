// Logs on standard error: a line an event, for people or for programs.
#pragma once

#include <spdlog/common.h>

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace blindfuse {

enum class LogFormat {
  kText,  // time, level, message
  kJson,  // an object a line: time, level, message, and an event's own members
};

// The names of the levels, from the most to the least: debug, info, warning, error, off.
std::vector<std::string> log_level_names();

// For everything that is logged from now on. `level` is one of the names.
void configure_log(LogFormat format, std::string_view level);

// An event with members: in text they follow the message as name=value. Members are strings and
// numbers.
void log_event(spdlog::level::level_enum level, std::string_view message,
               const nlohmann::ordered_json& members);

}  // namespace blindfuse
