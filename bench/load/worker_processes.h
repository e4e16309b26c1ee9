// The processes that make the load, as their parent sees them: it has no secrets and no threads, so
// that it can be forked.
#pragma once

#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "bench/load/answer_check.h"
#include "bench/load/channel.h"
#include "bench/load/event_loop.h"
#include "bench/load/key_source.h"
#include "bench/load/options.h"
#include "bench/load/window.h"

namespace blindfuse::load {

// Functions throw EngineTrouble, with its words, when a process fails.
class WorkerProcesses {
 public:
  // Forks options.processes of them, which begin to prepare.
  WorkerProcesses(const Options& options, KeySource& keys, const std::string& api_key);
  // Ends them.
  ~WorkerProcesses();
  WorkerProcesses(const WorkerProcesses&) = delete;
  WorkerProcesses& operator=(const WorkerProcesses&) = delete;

  // Waits until all are ready; the facts of the database.
  nlohmann::json wait_until_ready();
  void start_at(Clock::time_point start);
  // Sleeps, unless a process fails.
  void sleep_until(Clock::time_point time);
  // What all counted in the next window that ends.
  Window next_window();
  // Stops the load and waits for the checks.
  CheckResult stop();

 private:
  struct Worker {
    pid_t pid;
    Channel channel;
  };

  nlohmann::json receive(Worker& worker, const char* member);

  std::vector<Worker> workers_;
};

}  // namespace blindfuse::load
