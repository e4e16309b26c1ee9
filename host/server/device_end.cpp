#include "host/server/device_end.h"

#include <chrono>
#include <exception>
#include <memory>
#include <utility>

#include "host/server/service_manager.h"
#include "host/system/device_fault.h"
#include "src/program/log.h"
#include "src/system/threads.h"

namespace blindfuse {

void DeviceEnd::set_device(std::string device) {
  const std::lock_guard lock(mutex_);
  device_ = std::move(device);
}

void DeviceEnd::set_service(std::function<void()> withhold, std::function<void()> send) {
  const std::lock_guard lock(mutex_);
  withhold_ = std::move(withhold);
  send_ = std::move(send);
}

void DeviceEnd::end(const std::string& what) {
  mutex_.lock();  // and never unlocked
  if (withhold_) withhold_();
  const std::string text = what + (device_.empty() ? "" : " (" + device_ + ")");
  const std::string next = leave_device_fault(text);
  log_within(std::chrono::seconds(1), LogLevel::kError,
             text + "; the program ends; " + next +
                 "; nvidia-smi and the kernel's log (journalctl -k, \"Xid\") may say more");
  try {
    if (send_) {
      auto sending = std::make_unique<WaitableThread>(send_);
      (void)sending->join_within(std::chrono::seconds(2));
      (void)sending.release();  // its destructor would wait
    }
  } catch (const std::exception&) {
    // The system cannot start a thread.
  }
  ReadyFile::end_process(ready_file_);
}

}  // namespace blindfuse
