#include "bench/load/worker_processes.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <new>

#include "bench/load/interruption.h"
#include "bench/load/worker.h"
#include "src/base/errors.h"

namespace blindfuse::load {
namespace {

[[noreturn]] void run_child(const Options& options, KeySource& keys, const std::string& api_key,
                            Channel& parent) {
  leave_interruptions();
  int status = 1;
  try {
    try {
      run_worker(options, keys, api_key, parent);
      status = 0;
    } catch (const std::bad_alloc&) {
      parent.send({{"failure", "out of memory; a smaller --pool takes less"}});
    } catch (const std::exception& error) {
      parent.send({{"failure", error.what()}});
    }
  } catch (const std::exception&) {
    // The parent is gone, and with it who could be told.
  }
  // Without the destructors of what is the parent's, such as its temporary folder.
  _exit(status);
}

}  // namespace

WorkerProcesses::WorkerProcesses(const Options& options, KeySource& keys,
                                 const std::string& api_key) {
  for (unsigned i = 0; i < options.processes; ++i) {
    auto [ours, theirs] = Channel::make();
    const pid_t pid = fork();
    if (pid < 0) throw EngineTrouble(std::string("cannot fork: ") + std::strerror(errno));
    if (pid == 0) {
      // The ends of the others stay with their own: when the parent goes, all see it.
      workers_.clear();
      ours = std::move(theirs);
      run_child(share_of(options, i), keys, api_key, ours);
    }
    workers_.push_back({pid, std::move(ours)});
  }
}

WorkerProcesses::~WorkerProcesses() {
  for (const Worker& worker : workers_) kill(worker.pid, SIGKILL);
  for (const Worker& worker : workers_) {
    while (waitpid(worker.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

nlohmann::json WorkerProcesses::receive(Worker& worker, const char* member) {
  auto message = worker.channel.receive();
  if (!message) throw EngineTrouble("a process of the load ended before its time");
  if (message->contains("failure")) {
    throw EngineTrouble(message->at("failure").get<std::string>());
  }
  return message->at(member);
}

nlohmann::json WorkerProcesses::wait_until_ready() {
  nlohmann::json facts;
  for (Worker& worker : workers_) facts = receive(worker, "ready");
  return facts;
}

void WorkerProcesses::start_at(Clock::time_point start) {
  const int64_t start_ns = std::chrono::nanoseconds(start.time_since_epoch()).count();
  for (Worker& worker : workers_) worker.channel.send({{"start_ns", start_ns}});
}

void WorkerProcesses::sleep_until(Clock::time_point time) {
  std::vector<pollfd> ends;
  for (const Worker& worker : workers_) ends.push_back({worker.channel.fd(), POLLIN, 0});
  for (;;) {
    throw_if_interrupted();
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(time - Clock::now()).count();
    if (left <= 0) return;
    const int timeout_ms = static_cast<int>(std::min<int64_t>(left, 1'000'000));
    const int ready = ::poll(ends.data(), ends.size(), timeout_ms);
    // From then on they have a window to tell of; before, nothing but a failure.
    if (ready <= 0 || Clock::now() >= time) continue;
    for (size_t i = 0; i < ends.size(); ++i) {
      if (ends[i].revents != 0) receive(workers_[i], "failure");
    }
  }
}

Window WorkerProcesses::next_window() {
  Window window;
  for (Worker& worker : workers_) window.merge(Window::from_json(receive(worker, "window")));
  return window;
}

CheckResult WorkerProcesses::stop() {
  for (Worker& worker : workers_) worker.channel.send({{"stop", true}});
  CheckResult all;
  for (Worker& worker : workers_) {
    auto message = receive(worker, "checks");
    CheckResult result;
    message.at("checked").get_to(result.checked);
    message.at("mismatches").get_to(result.mismatches);
    message.at("examples").get_to(result.examples);
    all.merge(result);
  }
  return all;
}

}  // namespace blindfuse::load
