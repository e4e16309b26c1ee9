#include "cuda/device/device_loss.h"

#include <atomic>
#include <mutex>

#include "src/base/errors.h"

namespace blindfuse {
namespace {

std::atomic<bool> is_lost = false;
std::mutex mutex;
std::string first_reason;

[[noreturn]] void throw_first_reason() {
  const std::lock_guard lock(mutex);
  throw DeviceLostError(first_reason);
}

}  // namespace

bool is_device_lost() { return is_lost; }

void lose_device(const std::string& why) {
  {
    const std::lock_guard lock(mutex);
    if (!is_lost) first_reason = why;
    is_lost = true;
  }
  throw_first_reason();
}

void require_device() {
  if (is_lost) throw_first_reason();
}

void forget_lost_device() { is_lost = false; }

}  // namespace blindfuse
