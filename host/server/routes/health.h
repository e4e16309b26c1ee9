// The service's readiness for new clients, and the responses to health checks, on the public
// listener and on the operator's.
#pragma once

#include <atomic>

#include "host/server/routes/problem.h"

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

// Says that the program runs.
inline http::Response live_response() {
  http::Response response{.text = "{\"status\":\"ok\"}\n"};
  response.set_header("Content-Type", "application/json");
  response.set_header("Cache-Control", "no-store");
  return response;
}

// Says that the service accepts new clients. Throws Refusal (503) if it does not.
inline http::Response ready_response(const Readiness& readiness) {
  if (readiness.is_stopping()) {
    throw Refusal(ProblemKind::kStopping, "this server is stopping");
  }
  if (readiness.is_draining()) {
    throw Refusal(ProblemKind::kStopping, "this server is draining, as its operator asked");
  }
  return live_response();
}

}  // namespace blindfuse
