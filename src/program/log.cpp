#include "src/program/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "src/program/printable.h"
#include "src/system/threads.h"

namespace blindfuse {
namespace {

std::atomic<bool> as_json = false;

// The members of the event that this thread is logging: loggers format where they are called.
thread_local const nlohmann::ordered_json* members_now = nullptr;

class JsonFormatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    spdlog::memory_buf_t time;
    time_.format(message, time);
    const auto level = spdlog::level::to_string_view(message.level);
    nlohmann::ordered_json line;
    line["time"] = std::string(time.data(), time.size());
    line["level"] = std::string(level.data(), level.size());
    line["message"] = std::string(message.payload.data(), message.payload.size());
    if (members_now != nullptr) line.update(*members_now);
    // Text that is not UTF-8, perhaps in a path, must not cost the line.
    const std::string text =
        line.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace) + "\n";
    out.append(text.data(), text.data() + text.size());
  }

  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<JsonFormatter>();
  }

 private:
  spdlog::pattern_formatter time_{"%Y-%m-%dT%H:%M:%S.%e%z", spdlog::pattern_time_type::local, ""};
};

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

std::string as_text(const nlohmann::ordered_json& value) {
  if (!value.is_string()) return value.dump();
  const std::string& text = value.get_ref<const std::string&>();
  const bool plain = !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
    return c > ' ' && c != '"' && c != '=' && c < 0x7f;
  });
  return plain ? text : value.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

std::vector<std::string> log_level_names() { return {"info", "warning", "error", "off"}; }

void configure_log(LogFormat format, std::string_view level) {
  as_json = format == LogFormat::kJson;
  if (as_json) spdlog::set_formatter(std::make_unique<JsonFormatter>());
  set_log_level(level);
  // A reader of the log through a pipe sees each line at once.
  spdlog::flush_on(spdlog::level::info);
}

std::string log_level() {
  const auto name = spdlog::level::to_string_view(spdlog::get_level());
  return std::string(name.data(), name.size());
}

void set_log_level(std::string_view level) {
  spdlog::set_level(spdlog::level::from_str(std::string(level)));
}

void log_message(LogLevel level, std::string_view message) noexcept try {
  // The message may quote a client, or a name that somebody else chose, to drive the operator's
  // terminal.
  spdlog::log(level_of(level), "{}",
              as_json ? std::string(message) : printable(message, message.npos));
} catch (...) {
}

void log_within(std::chrono::milliseconds patience, LogLevel level, std::string message) noexcept
    try {
  const auto logged = std::make_shared<std::promise<void>>();
  const auto is_logged = logged->get_future();
  // Left alone where it does not end: nothing of the caller's is in use there.
  start_thread([level, message = std::move(message), logged] {
    log_message(level, message);
    logged->set_value();
  }).detach();
  (void)is_logged.wait_for(patience);
} catch (...) {
}

void log_event(LogLevel level, std::string_view message, const nlohmann::ordered_json& members) {
  if (!spdlog::default_logger_raw()->should_log(level_of(level))) return;
  if (as_json) return log_sentence(level, message, members);
  std::string line(message);
  for (const auto& [name, value] : members.items()) line += " " + name + "=" + as_text(value);
  log_message(level, line);
}

void log_sentence(LogLevel level, std::string_view message, const nlohmann::ordered_json& members) {
  members_now = &members;
  log_message(level, message);
  members_now = nullptr;
}

}  // namespace blindfuse
