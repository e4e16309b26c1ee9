#include "bench/load/worker.h"

#include <sys/resource.h>

#include <future>
#include <memory>

#include "bench/load/event_loop.h"
#include "bench/load/generator.h"
#include "bench/load/idle_connections.h"
#include "bench/load/slow_senders.h"

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

Clock::duration duration_of(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

nlohmann::json facts_of(const DatabaseDescription& database) {
  const Layout& layout = database.layout();
  return {{"epoch", database.epoch()},
          {"kind", layout.kind == DatabaseKind::kKeyword ? "keyword" : "index"},
          {"key_count", layout.key_count},
          {"matrix_bytes", layout.matrix_bytes()},
          {"query_bytes", layout.query_bytes()},
          {"response_bytes", layout.response_bytes()}};
}

class Worker : private EventHandler {
 public:
  Worker(const Options& options, KeySource& keys, const std::string& api_key, Channel& parent)
      : options_(options),
        keys_(keys),
        api_key_(api_key),
        parent_(parent),
        endpoint_(parse_url(options.url), options.ca_file),
        served_(options, api_key),
        answers_(options.body_format()),
        generator_(make_generator(loop_, endpoint_, options, window_, answers_)),
        idle_(loop_, endpoint_, options.idle_connections, window_),
        slow_(loop_, endpoint_, options.slow_senders, options.slow_bytes_per_second, window_) {}

  void run() {
    make_pool();
    parent_.send({{"ready", facts_of(pool_->database())}});
    const auto go = parent_.receive();
    if (!go) return;
    if (options_.epoch_changes) generator_->on_epoch_gone([this] { leave_epoch(); });
    schedule(Clock::time_point(std::chrono::nanoseconds(go->at("start_ns").get<int64_t>())));
    loop_.watch(parent_.fd(), *this);
    loop_.run();
    if (refresh_.valid()) refresh_.get();
    checks_.merge(answers_.check(*pool_, served_));
    parent_.send({{"checks",
                   {{"checked", checks_.checked},
                    {"mismatches", checks_.mismatches},
                    {"examples", checks_.examples}}}});
  }

 private:
  void make_pool() { pool_.emplace(served_.sync(), keys_, options_, endpoint_, api_key_); }

  void schedule(Clock::time_point start) {
    loop_.at(start, [this] {
      idle_.start();
      slow_.start(*pool_);
      generator_->start(*pool_);
    });
    const Clock::time_point measured = start + duration_of(options_.warmup_s);
    loop_.at(measured, [this] { begin_window(); });
    schedule_end(measured + duration_of(options_.seconds));
  }

  void schedule_end(Clock::time_point end) {
    loop_.at(end, [this, end] {
      end_window();
      begin_window();
      schedule_end(end + duration_of(options_.seconds));
    });
  }

  void begin_window() {
    generator_->count_traffic();
    window_ = {};
    window_start_ = Clock::now();
    cpu_start_ = cpu_seconds();
    if (is_paused_) paused_since_ = window_start_;
  }

  void end_window() {
    generator_->count_traffic();
    if (is_paused_) count_pause();
    window_.waiting = generator_->waiting();
    window_.seconds = std::chrono::duration<double>(Clock::now() - window_start_).count();
    window_.cpu_seconds = cpu_seconds() - cpu_start_;
    parent_.send({{"window", window_.to_json()}});
  }

  // The parent says stop, or is gone.
  void on_ready() override {
    std::optional<nlohmann::json> message;
    if (parent_.poll(message)) loop_.stop();
  }

  // The epoch of the pool is retired. No answer may come any more when the pool goes.
  void leave_epoch() {
    is_paused_ = true;
    paused_since_ = Clock::now();
    ++window_.epoch_changes;
    slow_.pause();
    generator_->pause([this] { refresh(); });
  }

  void refresh() {
    refresh_ = std::async(std::launch::async, [this] {
      // The old answers first: their hints go when the new ones come.
      checks_.merge(answers_.check(*pool_, served_));
      make_pool();
    });
    await_refresh();
  }

  void await_refresh() {
    constexpr std::chrono::milliseconds kLookAgain{10};
    if (refresh_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
      loop_.at(Clock::now() + kLookAgain, [this] { await_refresh(); });
      return;
    }
    refresh_.get();
    count_pause();
    is_paused_ = false;
    slow_.start(*pool_);
    generator_->start(*pool_);
  }

  void count_pause() {
    const Clock::time_point now = Clock::now();
    window_.paused_seconds += std::chrono::duration<double>(now - paused_since_).count();
    paused_since_ = now;
  }

  const Options& options_;
  KeySource& keys_;
  const std::string& api_key_;
  Channel& parent_;
  const Endpoint endpoint_;
  ServedDatabase served_;
  EventLoop loop_;
  Window window_;
  Clock::time_point window_start_;
  double cpu_start_ = 0;
  AnswerCheck answers_;
  std::unique_ptr<Generator> generator_;
  IdleConnections idle_;
  SlowSenders slow_;
  std::optional<QueryPool> pool_;
  CheckResult checks_;
  bool is_paused_ = false;
  Clock::time_point paused_since_;
  std::future<void> refresh_;  // the last: what it uses outlives it
};

}  // namespace

void run_worker(const Options& options, KeySource& keys, const std::string& api_key,
                Channel& parent) {
  Worker(options, keys, api_key, parent).run();
}

}  // namespace blindfuse::load
