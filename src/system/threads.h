// Threads of the operating system, which may be unable to start more of them.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <string>
#include <system_error>
#include <thread>

namespace blindfuse {

// Throws ResourceError for an error of std::thread, and names the limits and the cure. `what` could
// not be started: "a thread", "8 threads".
[[noreturn]] void fail_starting(const std::string& what, const std::system_error& error);

// Starts a thread that runs `work`. Throws as fail_starting() does.
std::thread start_thread(std::function<void()> work);

// A thread whose work may be stuck in the operating system, as in a read from a file system that
// hangs. Its owner can then tell, instead of waiting forever.
class WaitableThread {
 public:
  // Runs `work`, which throws nothing. Throws as fail_starting() does.
  explicit WaitableThread(std::function<void()> work);
  // Waits for the end of the work.
  ~WaitableThread();
  WaitableThread(const WaitableThread&) = delete;
  WaitableThread& operator=(const WaitableThread&) = delete;

  // Joins the thread, if its work ends after that long at most, and returns whether it has. Returns
  // true from then on. The owner alone calls it: two threads may not at the same time.
  bool join_within(std::chrono::milliseconds patience);

 private:
  std::promise<void> promise_;
  const std::future<void> ended_;
  std::thread thread_;
};

}  // namespace blindfuse
