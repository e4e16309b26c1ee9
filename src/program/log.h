// Logs on standard error, one line an event, for people or for programs.
//
// spdlog writes the lines. Its header takes the compiler seconds in every file that includes it, so
// only log.cpp and program.cpp do.
#pragma once

#include <fmt/core.h>

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace blindfuse {

enum class LogFormat {
  kText,  // time, level, message
  kJson,  // an object a line: time, level, message, and an event's own members
};

enum class LogLevel { kInfo, kWarning, kError };

// The names of the levels, from the most to the least: info, warning, error, off.
std::vector<std::string> log_level_names();

// Sets the format and the level of all events from now on. `level` is one of the names.
void configure_log(LogFormat format, std::string_view level);

// The lowest level that is logged, and the function that changes it while the program runs. Any
// thread.
std::string log_level();
void set_log_level(std::string_view level);

// This function and those that follow lose a message if there is no memory for it. Code that logs a
// failure must not fail because of the log.
void log_message(LogLevel level, std::string_view message) noexcept;

// Logs on a thread of its own, for which it waits at most that long: standard error may be a pipe
// without a reader, and another thread may wait there with its lock.
void log_within(std::chrono::milliseconds patience, LogLevel level, std::string message) noexcept;

template <typename... Values>
void log_formatted(LogLevel level, fmt::format_string<Values...> text, Values&&... values) noexcept
    try {
  log_message(level, fmt::format(text, std::forward<Values>(values)...));
} catch (...) {
}

template <typename... Values>
void log_info(fmt::format_string<Values...> text, Values&&... values) noexcept {
  log_formatted(LogLevel::kInfo, text, std::forward<Values>(values)...);
}

template <typename... Values>
void log_warning(fmt::format_string<Values...> text, Values&&... values) noexcept {
  log_formatted(LogLevel::kWarning, text, std::forward<Values>(values)...);
}

template <typename... Values>
void log_error(fmt::format_string<Values...> text, Values&&... values) noexcept {
  log_formatted(LogLevel::kError, text, std::forward<Values>(values)...);
}

// An event with members: in text they follow the message as name=value. Members are strings and
// numbers.
void log_event(LogLevel level, std::string_view message, const nlohmann::ordered_json& members);

// An event whose message says everything: in text the members are left out.
void log_sentence(LogLevel level, std::string_view message, const nlohmann::ordered_json& members);

}  // namespace blindfuse
