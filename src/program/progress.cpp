#include "src/program/progress.h"

#include <unistd.h>

#include <array>
#include <cinttypes>
#include <cstdio>
#include <utility>

#include "src/program/printable.h"

namespace blindfuse {
namespace {

using std::chrono::steady_clock;

constexpr int64_t kFirstShowNs = 1'000'000'000;
constexpr int64_t kShowEveryNs = 200'000'000;

int64_t nanoseconds(steady_clock::duration duration) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count();
}

std::string human_amount(double amount, bool bytes) {
  return bytes ? human_bytes(static_cast<uint64_t>(amount)) : human_count(amount);
}

std::string human_seconds(double seconds) {
  std::array<char, 32> text;
  const auto whole = static_cast<uint64_t>(seconds + 0.5);
  std::snprintf(text.data(), text.size(), "%" PRIu64 ":%02" PRIu64, whole / 60, whole % 60);
  return text.data();
}

}  // namespace

Progress::Progress(std::string what, uint64_t total, Unit unit)
    : what_(std::move(what)),
      total_(total),
      unit_(unit),
      enabled_(isatty(STDERR_FILENO) != 0),
      start_(steady_clock::now()),
      next_show_ns_(kFirstShowNs) {}

Progress::~Progress() {
  if (shown_) std::fputs("\r\x1b[K", stderr);
}

void Progress::advance(uint64_t amount) {
  done_ += amount;
  show_when_due();
}

void Progress::set_done(uint64_t done) {
  done_ = done;
  show_when_due();
}

void Progress::show_when_due() {
  if (!enabled_) return;
  const auto now = steady_clock::now();
  int64_t due = next_show_ns_;
  if (nanoseconds(now - start_) < due) return;
  if (next_show_ns_.compare_exchange_strong(due, nanoseconds(now - start_) + kShowEveryNs)) {
    show(now);
  }
}

void Progress::show(steady_clock::time_point now) {
  const std::lock_guard lock(mutex_);
  const auto done = static_cast<double>(done_.load());
  const double seconds = static_cast<double>(nanoseconds(now - start_)) * 1e-9;
  const double rate = done / seconds;
  const bool bytes = unit_ == Unit::kBytes;
  std::string line = "\r\x1b[K" + what_ + "  " + human_amount(done, bytes);
  if (total_ != 0) {
    const auto total = static_cast<double>(total_);
    line += " of " + human_amount(total, bytes);
    std::array<char, 16> percent;
    std::snprintf(percent.data(), percent.size(), " (%.0f %%)", 100 * done / total);
    line += percent.data();
  }
  line += "  " + human_amount(rate, bytes) + "/s";
  if (total_ != 0 && rate > 0 && total_ > done_) {
    line += "  " + human_seconds(static_cast<double>(total_ - done_) / rate) + " left";
  }
  std::fputs(line.c_str(), stderr);
  std::fflush(stderr);
  shown_ = true;
}

}  // namespace blindfuse
