// A whole load: its queries, its threads, and their changes when the server's epoch changes.
#pragma once

#include <chrono>
#include <exception>
#include <future>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <vector>

#include "bench/load/answer_check.h"
#include "bench/load/window.h"

namespace blindfuse::load {

class Endpoint;
class LoadThread;

class Load {
 public:
  using Clock = std::chrono::steady_clock;

  // Fetches the hints and makes the queries. Throws the errors of reading files and of the client
  // library.
  Load(const Options& options, const Target& target);
  ~Load();
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  // Not while the epoch changes.
  nlohmann::json database_facts() const;

  void start();
  // Sleeps, and throws the exception with which a thread of the load failed.
  void sleep_until(Clock::time_point time);
  // The counts since the last call.
  Window take_window();
  // Ends the load and checks answers.
  CheckResult stop();

 private:
  using Pool = std::shared_ptr<const QueryPool>;

  Pool make_pool();
  void leave_epoch(const Pool& pool);
  void change_epoch();
  void fail(std::exception_ptr trouble);
  void end_threads();

  const Options options_;
  const Target target_;
  KeySource keys_;
  ServedDatabase served_;
  AnswerCheck answers_;
  std::unique_ptr<Endpoint> endpoint_;
  std::promise<void> failure_;
  std::future<void> failed_;
  double cpu_start_ = 0;

  mutable std::mutex mutex_;  // of the rest
  Pool pool_;                 // null while the epoch changes
  CheckResult checks_;
  Window changes_;  // what changes of the epoch add to a window
  bool has_failed_ = false;
  std::vector<std::unique_ptr<LoadThread>> threads_;
  std::future<void> change_;  // the last: what it uses outlives it
};

}  // namespace blindfuse::load
