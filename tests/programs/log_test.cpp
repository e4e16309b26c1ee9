#include "src/program/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sstream>

namespace blindfuse {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

class Log : public ::testing::Test {
 protected:
  Log() {
    before_ = spdlog::default_logger();
    spdlog::set_default_logger(std::make_shared<spdlog::logger>(
        "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(out_)));
    spdlog::set_pattern("%l %v");
  }
  ~Log() override {
    configure_log(LogFormat::kText, "info");
    spdlog::set_default_logger(before_);
    spdlog::set_pattern("%+");
  }

  // The lines since the last time.
  std::vector<std::string> lines() {
    std::vector<std::string> lines;
    std::istringstream text(out_.str());
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    out_.str("");
    return lines;
  }
  json object() {
    const auto all = lines();
    EXPECT_EQ(all.size(), 1u);
    return json::parse(all.at(0));
  }

  std::ostringstream out_;
  std::shared_ptr<spdlog::logger> before_;
};

TEST_F(Log, IsAnObjectALine) {
  configure_log(LogFormat::kJson, "info");
  spdlog::info("listening on {}", "http://127.0.0.1:8080");
  const json line = object();
  EXPECT_EQ(line.size(), 3u);
  EXPECT_EQ(line.at("level"), "info");
  EXPECT_EQ(line.at("message"), "listening on http://127.0.0.1:8080");
  // As in 2026-11-21T09:08:07.123+02:00
  EXPECT_THAT(line.at("time").get<std::string>(),
              ::testing::MatchesRegex(
                  "[0-9]+-[0-9]+-[0-9]+T[0-9]+:[0-9]+:[0-9]+\\.[0-9]+[+-][0-9]+:[0-9]+"));
}

TEST_F(Log, HasMembersOfItsEvents) {
  configure_log(LogFormat::kJson, "info");
  log_event(LogLevel::kInfo, "request", {{"status", 200}, {"ms", 1.5}, {"client", "::1"}});
  spdlog::warn("another");
  const auto all = lines();
  ASSERT_EQ(all.size(), 2u);
  const json event = json::parse(all[0]);
  EXPECT_EQ(event.at("message"), "request");
  EXPECT_EQ(event.at("status"), 200);
  EXPECT_EQ(event.at("ms"), 1.5);
  EXPECT_EQ(event.at("client"), "::1");
  EXPECT_FALSE(json::parse(all[1]).contains("status")) << "members are of one event alone";
  EXPECT_LT(all[0].find("\"time\""), all[0].find("\"message\"")) << "people read it, too";
}

// A path may hold anything; a line stays a line.
TEST_F(Log, StaysOnOneLineWhateverItSays) {
  configure_log(LogFormat::kJson, "info");
  std::string all_bytes;
  for (int i = 1; i < 256; ++i) all_bytes.push_back(static_cast<char>(i));
  for (const std::string& text :
       {std::string("two\nlines\r\n"), std::string("nul\0nul", 7), std::string("\"quoted\\\""),
        std::string("\x1b[31mred\x7f"), std::string("\xff\xfe\x80"), std::string("\xe2\x82"),
        std::string("{} {0} %s"), all_bytes}) {
    log_event(LogLevel::kInfo, text, {{"path", text}});
    const json line = object();
    EXPECT_EQ(line.at("message"), line.at("path"));
    spdlog::info("{}", text);
    EXPECT_EQ(object().at("message"), line.at("message"));
  }
  spdlog::info("a \xff b");
  EXPECT_EQ(object().at("message"), "a \xef\xbf\xbd b") << "only what is no text is replaced";
  spdlog::info("\xc3\xa4\n");
  EXPECT_EQ(object().at("message"), "\xc3\xa4\n");
}

TEST_F(Log, WritesMembersBehindTheMessage) {
  configure_log(LogFormat::kText, "info");
  log_event(LogLevel::kInfo, "request",
            {{"method", "GET"}, {"status", 200}, {"ms", 0.25}, {"client", "127.0.0.1"}});
  EXPECT_EQ(lines(), std::vector<std::string>{
                         "info request method=GET status=200 ms=0.25 client=127.0.0.1"});
}

TEST_F(Log, HasMembersOfASentenceInJsonAlone) {
  configure_log(LogFormat::kText, "info");
  log_sentence(LogLevel::kInfo, "listening on x", {{"url", "x"}});
  EXPECT_EQ(lines(), std::vector<std::string>{"info listening on x"});
  configure_log(LogFormat::kJson, "info");
  log_sentence(LogLevel::kInfo, "listening on x", {{"url", "x"}});
  const json event = object();
  EXPECT_EQ(event.at("message"), "listening on x");
  EXPECT_EQ(event.at("url"), "x");
}

TEST_F(Log, QuotesMembersThatAreNotPlain) {
  configure_log(LogFormat::kText, "info");
  const std::vector<std::pair<std::string, std::string>> values = {
      {"", "\"\""},
      {"two words", "\"two words\""},
      {"a=b", "\"a=b\""},
      {"say \"x\"", "\"say \\\"x\\\"\""},
      {"two\nlines", "\"two\\nlines\""},
      {"\x1b[31m", "\"\\u001b[31m\""},
      {"\xc3\xa4", "\"\\u00e4\""},
      {"\xff", "\"\\ufffd\""},
      {"{}", "{}"},
      {"/plain/path-1.2_3:4", "/plain/path-1.2_3:4"},
  };
  for (const auto& [value, written] : values) {
    log_event(LogLevel::kInfo, "event", {{"x", value}});
    EXPECT_EQ(lines(), std::vector<std::string>{"info event x=" + written});
  }
}

TEST_F(Log, DrivesNoTerminal) {
  const std::string text =
      "\x1b]0;title\x07\n\xc2\x9b"
      "31m\x7f";
  configure_log(LogFormat::kText, "info");
  log_info("cannot read {}", text);
  log_event(LogLevel::kInfo, "request", {{"client", text}});
  const auto written = lines();
  ASSERT_EQ(written.size(), 2u);
  EXPECT_EQ(written[0], "info cannot read \\x1b]0;title\\x07\\x0a\\xc2\\x9b31m\\x7f");
  EXPECT_THAT(written[1], ::testing::HasSubstr("\\u001b]0;title"));
  configure_log(LogFormat::kJson, "info");
  log_info("cannot read {}", text);
  const std::string line = lines().at(0);
  EXPECT_EQ(json::parse(line).at("message"), "cannot read " + text);
  EXPECT_THAT(line, ::testing::Not(::testing::HasSubstr("\x1b")));
  EXPECT_THAT(line, ::testing::Not(::testing::HasSubstr("\x9b")));
  EXPECT_THAT(line, ::testing::Not(::testing::HasSubstr("\x7f")));
}

TEST_F(Log, LeavesOutWhatIsBelowItsLevel) {
  for (const LogFormat format : {LogFormat::kText, LogFormat::kJson}) {
    configure_log(format, "warning");
    spdlog::info("x");
    log_event(LogLevel::kInfo, "x", {{"y", 1}});
    EXPECT_TRUE(lines().empty());
    spdlog::warn("x");
    spdlog::error("x");
    log_event(LogLevel::kError, "x", {{"y", 1}});
    EXPECT_EQ(lines().size(), 3u);
    configure_log(format, "off");
    spdlog::critical("x");
    EXPECT_TRUE(lines().empty());
    configure_log(format, "info");
    spdlog::info("x");
    EXPECT_EQ(lines().size(), 1u);
  }
}

// Standard error without a reader.
class StuckSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  void let_go() { go_.set_value(); }
  void wait_for_a_line() { written_.get_future().wait(); }

 private:
  void sink_it_(const spdlog::details::log_msg&) override {
    go_.get_future().wait();
    written_.set_value();
  }
  void flush_() override {}

  std::promise<void> go_, written_;
};

TEST_F(Log, IsNotWaitedForWhereItIsStuck) {
  const auto sink = std::make_shared<StuckSink>();
  // What logs there may still be in the logger when the test is over.
  static auto* const kept =
      new std::shared_ptr<spdlog::logger>(std::make_shared<spdlog::logger>("stuck", sink));
  spdlog::set_default_logger(*kept);
  log_within(std::chrono::milliseconds(1), LogLevel::kError, "the device hangs");
  sink->let_go();
  sink->wait_for_a_line();
}

TEST_F(Log, IsThereWhenItWasWaitedFor) {
  log_within(std::chrono::minutes(1), LogLevel::kError, "the device hangs");
  EXPECT_EQ(lines(), std::vector<std::string>{"error the device hangs"});
}

}  // namespace
}  // namespace blindfuse
