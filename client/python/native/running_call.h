// A call from Python into the client library, which runs without Python's lock.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <exception>
#include <functional>
#include <optional>
#include <stop_token>

#include <blindfuse/progress.h>

namespace blindfuse::python {

// Does what PyEval_RestoreThread() does, except that a thread that must not get the lock any more,
// because the interpreter ends, stays here.
void take_lock(PyThreadState* state);

// Releases Python's lock while it exists.
class WithoutLock {
 public:
  WithoutLock() : state_(PyEval_SaveThread()) {}
  ~WithoutLock() { take_lock(state_); }
  WithoutLock(const WithoutLock&) = delete;
  WithoutLock& operator=(const WithoutLock&) = delete;

 private:
  PyThreadState* state_;
};

// An object on the stack of the calling thread. While it exists, this thread does not hold Python's
// lock, and reports of the library's progress on this thread come to it.
class RunningCall {
 public:
  // `progress` is called with (stage, done, total), or is None. Its exception goes to `error`.
  RunningCall(const void* session, nanobind::handle progress, std::exception_ptr& error);
  ~RunningCall();  // takes the lock again
  RunningCall(const RunningCall&) = delete;
  RunningCall& operator=(const RunningCall&) = delete;

  // True if this thread is within a call of the session. Another call would then wait for itself.
  static bool is_within(const void* session);

  // The library's ProgressCallback. Runs Python's signal handlers, if they may run, and calls the
  // call's `progress`. Returns false if one of them raised.
  static bool report(const ClientProgress& progress);

  // Runs work() on a thread of its own. Meanwhile this thread runs signal handlers. If one raises,
  // it requests the stop.
  void run_apart(const std::function<void()>& work, std::stop_source& stop);

  // The interpreter ends: threads other than the calling one must not ask for its lock any more,
  // or the interpreter ends them in the middle of C++.
  static void note_interpreter_ends();

 private:
  bool is_due(const ClientProgress& progress);
  // Runs signal handlers, then work(), with the lock. Returns false if one of them raised.
  template <typename Work>
  bool run_python(Work&& work);

  const void* session_;
  nanobind::handle progress_;
  RunningCall* outer_;  // of this thread: a progress callback may use another session
  std::exception_ptr& error_;
  std::optional<ClientStage> stage_;
  std::chrono::steady_clock::time_point reported_;
  const WithoutLock unlocked_;  // last, so that it ends before the rest
};

// Runs work() without Python's lock. If `progress` or a signal handler raises meanwhile, throws
// that exception as nanobind::python_error, whatever the result of the work. With `stop_apart`,
// uses run_apart(): for work in which report() is not called while it waits.
void run_without_lock(const void* session, nanobind::handle progress,
                      const std::function<void()>& work, std::stop_source* stop_apart = nullptr);

}  // namespace blindfuse::python
