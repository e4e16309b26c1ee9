// The options of `blindfuse serve`.
#pragma once

#include <string>

#include "host/commands/engine_setup.h"
#include "host/server/service.h"
#include "src/program/log.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace blindfuse {

struct ServeOptions {
  std::string directory;
  std::string listen = "127.0.0.1:8080";
  std::string admin_listen;  // empty: no admin listener
  std::string engine = "auto";
  unsigned thread_count = 0;
  std::string tls_certificate;
  std::string tls_key;
  std::string api_keys;
  LogFormat log_format = LogFormat::kText;
  std::string log_level = "info";
  ServiceOptions service;

  DeviceLimit device_limit;

  // Adds all options to this command, which must not outlive this.
  void add_to(CLI::App& command);
  // Checks the options, and derives the dependent settings, after the command line is read.
  void resolve();

 private:
  void add_engine_options(CLI::App& command);
  void add_queue_options(CLI::App& command);
  void add_memory_options(CLI::App& command);
  void add_access_options(CLI::App& command);
  void add_log_options(CLI::App& command);

  unsigned http_threads_ = 0;
  uint64_t timeout_ms_ = 30'000;
  uint64_t grace_seconds_ = 60;
  uint64_t watch_seconds_ = 2;
  bool no_page_ = false;
};

}  // namespace blindfuse
