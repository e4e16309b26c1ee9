#include "src/system/threads.h"

#include <sys/resource.h>

#include <utility>

#include "src/base/errors.h"

namespace blindfuse {
namespace {

std::string process_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NPROC, &limit) != 0) return "unknown";
  return limit.rlim_cur == RLIM_INFINITY ? "unlimited" : std::to_string(limit.rlim_cur);
}

}  // namespace

void fail_starting(const std::string& what, const std::system_error& error) {
  throw ResourceError(
      "cannot start " + what + ": " + error.code().message() +
      "; raise the limit on a user's threads (ulimit -u, now " + process_limit() +
      "), on those of a systemd unit (TasksMax) or a container (pids), or on memory "
      "(ulimit -v), or ask for fewer (--threads, --http-threads)");
}

std::thread start_thread(std::function<void()> work) {
  try {
    return std::thread(std::move(work));
  } catch (const std::system_error& error) {
    fail_starting("a thread", error);
  }
}

WaitableThread::WaitableThread(std::function<void()> work)
    : ended_(promise_.get_future()), thread_(start_thread([this, work = std::move(work)] {
        work();
        promise_.set_value();
      })) {}

WaitableThread::~WaitableThread() {
  if (thread_.joinable()) thread_.join();
}

bool WaitableThread::join_within(std::chrono::milliseconds patience) {
  if (!thread_.joinable()) return true;
  if (ended_.wait_for(patience) != std::future_status::ready) return false;
  thread_.join();
  return true;
}

}  // namespace blindfuse
