// Whether the service accepts new clients, for health checks.
#pragma once

#include <atomic>

namespace blindfuse {

// Any thread.
class Readiness {
 public:
  // The service was told to stop, and will.
  void set_stopping() { is_stopping_ = true; }
  bool is_stopping() const { return is_stopping_; }

  // The operator takes the service out, in order to stop it or not, or puts it back.
  void set_draining(bool is_draining) { is_draining_ = is_draining; }
  bool is_draining() const { return is_draining_; }

 private:
  std::atomic<bool> is_stopping_ = false;
  std::atomic<bool> is_draining_ = false;
};

}  // namespace blindfuse
