#include "bench/load/load.h"

#include <sys/resource.h>

#include "bench/load/load_thread.h"

namespace blindfuse::load {
namespace {

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

Load::Load(const Options& options, const Target& target)
    : options_(options),
      target_(target),
      keys_(options),
      served_(target, options),
      answers_(options.body_format()),
      failed_(failure_.get_future()),
      pool_(make_pool()) {}

Load::~Load() { end_threads(); }

nlohmann::json Load::database_facts() const {
  const std::lock_guard lock(mutex_);
  const DatabaseDescription& database = pool_->database();
  const Layout& layout = database.layout();
  return {{"epoch", database.epoch()},
          {"kind", layout.kind == DatabaseKind::kKeyword ? "keyword" : "index"},
          {"key_count", layout.key_count},
          {"keys_per_request", pool_->keys_per_query()},
          {"keys_per_request_max", load::keys_per_query(layout, {})},
          {"bucket_count", layout.bucket_count()},
          {"matrix_bytes", layout.matrix_bytes()},
          {"query_bytes", layout.query_bytes()},
          {"response_bytes", layout.response_bytes()}};
}

void Load::start() {
  const LoadThread::Events events = {[this](const Pool& pool) { leave_epoch(pool); },
                                     [this](std::exception_ptr trouble) { fail(trouble); }};
  endpoint_ = std::make_unique<Endpoint>(target_, options_.ca_file, options_.from);
  const std::lock_guard lock(mutex_);
  for (unsigned i = 0; i < options_.load_threads; ++i) {
    threads_.push_back(
        std::make_unique<LoadThread>(share_of(options_, i), *endpoint_, answers_, events));
    threads_.back()->send_from(pool_);
  }
}

void Load::sleep_until(Clock::time_point time) {
  if (failed_.wait_until(time) == std::future_status::ready) failed_.get();
}

Window Load::take_window() {
  Window window;
  for (const auto& thread : threads_) window.merge(thread->take_window());
  const double cpu = cpu_seconds();
  window.cpu_seconds = cpu - std::exchange(cpu_start_, cpu);
  const std::lock_guard lock(mutex_);
  window.merge(std::exchange(changes_, {}));
  return window;
}

CheckResult Load::stop() {
  end_threads();
  if (change_.valid()) change_.get();
  if (failed_.wait_for(std::chrono::seconds(0)) == std::future_status::ready) failed_.get();
  checks_.merge(answers_.check(served_));
  return checks_;
}

// A change of the epoch may be looking for them.
void Load::end_threads() {
  std::vector<std::unique_ptr<LoadThread>> ending;
  {
    const std::lock_guard lock(mutex_);
    ending.swap(threads_);
  }
}

Load::Pool Load::make_pool() {
  auto pool = std::make_shared<const QueryPool>(served_.sync(), keys_, options_, target_);
  answers_.set_pool(pool);
  return pool;
}

// The first who says so of a pool begins the change.
void Load::leave_epoch(const Pool& pool) {
  const std::lock_guard lock(mutex_);
  if (pool != pool_) return;
  pool_ = nullptr;
  change_ = std::async(std::launch::async, [this] {
    try {
      change_epoch();
    } catch (...) {
      fail(std::current_exception());
    }
  });
}

void Load::change_epoch() {
  const auto begun = Clock::now();
  // The old answers first: their hints go when the new ones come.
  const CheckResult checks = answers_.check(served_);
  {
    const std::lock_guard lock(mutex_);
    checks_.merge(checks);
  }
  const Pool pool = make_pool();
  const std::lock_guard lock(mutex_);
  pool_ = pool;
  for (const auto& thread : threads_) thread->send_from(pool);
  ++changes_.epoch_changes;
  changes_.paused_seconds += std::chrono::duration<double>(Clock::now() - begun).count();
}

void Load::fail(std::exception_ptr trouble) {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(has_failed_, true)) failure_.set_exception(trouble);
}

}  // namespace blindfuse::load
