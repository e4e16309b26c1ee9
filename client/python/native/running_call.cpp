#include "client/python/native/running_call.h"

#include <cxxabi.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace blindfuse::python {
namespace {

// Python's lock may be contended, and a query takes milliseconds, so reports are rare.
constexpr auto kReportEvery = std::chrono::milliseconds(50);

thread_local RunningCall* innermost = nullptr;

std::atomic<bool> interpreter_ends = false;
std::atomic<std::thread::id> ending_thread;

void block_if_finalizing() {
  while (interpreter_ends && ending_thread.load() != std::this_thread::get_id()) pause();
}

// work(), which may ask for Python's lock. A thread that asks, or still waits, after the
// interpreter has begun to end is ended by pthread_exit() (before Python 3.14). That unwinds the
// stack, which C++ in between may not stop: it stays here until the process ends.
template <typename Work>
auto hold_forced_unwind(Work&& work) {
#ifdef __GLIBCXX__
  try {
    return work();
  } catch (const abi::__forced_unwind&) {
    for (;;) pause();
  }
#else
  return work();
#endif
}

}  // namespace

void take_lock(PyThreadState* state) {
  block_if_finalizing();
  hold_forced_unwind([state] { PyEval_RestoreThread(state); });
}

RunningCall::RunningCall(const void* session, nanobind::handle progress, std::exception_ptr& error)
    : session_(session),
      progress_(progress),
      outer_(std::exchange(innermost, this)),
      error_(error),
      reported_(std::chrono::steady_clock::now()) {}

RunningCall::~RunningCall() { innermost = outer_; }

bool RunningCall::is_within(const void* session) {
  for (const RunningCall* call = innermost; call != nullptr; call = call->outer_) {
    if (call->session_ == session) return true;
  }
  return false;
}

void RunningCall::note_interpreter_ends() {
  ending_thread = std::this_thread::get_id();
  interpreter_ends = true;
}

bool RunningCall::is_due(const ClientProgress& progress) {
  const auto now = std::chrono::steady_clock::now();
  const bool is_new = stage_ != progress.stage;
  // A preparation that took a millisecond need not be reported. A download is reported from its
  // beginning, and a reported stage to its end.
  const bool is_download = progress.stage == ClientStage::kFetchingHints;
  const bool is_end = progress.total > 0 && progress.done == progress.total;
  const bool is_edge = is_new ? is_download : is_end;
  if (!is_edge && now - reported_ < kReportEvery) return false;
  stage_ = progress.stage;
  reported_ = now;
  return true;
}

bool RunningCall::report(const ClientProgress& progress) {
  RunningCall* call = innermost;
  if (call == nullptr || !call->is_due(progress)) return true;
  return call->run_python([&] {
    if (call->progress_.is_none()) return;
    const nanobind::tuple arguments =
        nanobind::make_tuple(static_cast<int>(progress.stage), progress.done, progress.total);
    // Any Python code gives its lock up, and asks for it again.
    PyObject* const result = hold_forced_unwind(
        [&] { return PyObject_CallObject(call->progress_.ptr(), arguments.ptr()); });
    if (result == nullptr) nanobind::raise_python_error();
    Py_DECREF(result);
  });
}

template <typename Work>
bool RunningCall::run_python(Work&& work) {
  block_if_finalizing();
  const PyGILState_STATE lock = hold_forced_unwind([] { return PyGILState_Ensure(); });
  bool is_done = false;
  try {
    if (PyErr_CheckSignals() != 0) nanobind::raise_python_error();
    work();
    is_done = true;
  } catch (...) {
    error_ = std::current_exception();
  }
  PyGILState_Release(lock);
  return is_done;
}

void RunningCall::run_apart(const std::function<void()>& work, std::stop_source& stop) {
  std::mutex mutex;
  std::condition_variable ended;
  bool has_ended = false;
  std::exception_ptr thrown;
  std::thread worker([&] {
    innermost = this;
    try {
      work();
    } catch (...) {
      thrown = std::current_exception();
    }
    const std::lock_guard lock(mutex);
    has_ended = true;
    ended.notify_one();
  });
  std::unique_lock lock(mutex);
  bool goes_on = true;
  while (!ended.wait_for(lock, kReportEvery, [&] { return has_ended; })) {
    if (!goes_on) continue;
    lock.unlock();
    goes_on = run_python([] {});
    if (!goes_on) stop.request_stop();
    lock.lock();
  }
  lock.unlock();
  worker.join();
  if (thrown) std::rethrow_exception(thrown);
}

void run_without_lock(const void* session, nanobind::handle progress,
                      const std::function<void()>& work, std::stop_source* stop_apart) {
  std::exception_ptr error;
  try {
    RunningCall call(session, progress, error);
    if (stop_apart != nullptr) {
      call.run_apart(work, *stop_apart);
    } else {
      work();
    }
  } catch (...) {
    if (!error) throw;
  }
  if (error) std::rethrow_exception(std::exchange(error, nullptr));
}

}  // namespace blindfuse::python
