// Asking a scheduler as one would a function.
#pragma once

#include <exception>
#include <future>
#include <memory>
#include <span>
#include <string>

#include "host/server/serving/batch_scheduler.h"
#include "src/base/errors.h"

namespace blindfuse::server_testing {

// Queues queries as they are sent; when this returns they are where the engine takes them from. The
// future waits for their responses; it throws what the scheduler throws, and ResourceError when the
// engine failed.
inline std::future<std::string> ask_later(BatchScheduler& scheduler,
                                          std::span<const uint8_t> queries) {
  const auto done = std::make_shared<std::promise<void>>();
  std::shared_ptr<PendingAnswer> answer;
  std::exception_ptr refused;
  try {
    answer = scheduler.ask(queries, BatchScheduler::Clock::time_point::max(),
                           [done] { done->set_value(); });
  } catch (...) {
    refused = std::current_exception();
  }
  return std::async(std::launch::deferred, [done, answer, refused] {
    if (refused) std::rethrow_exception(refused);
    done->get_future().wait();
    if (answer->outcome() != PendingAnswer::Outcome::kAnswered) throw ResourceError("failed");
    return std::move(answer->responses());
  });
}

inline std::string ask_and_wait(BatchScheduler& scheduler, std::span<const uint8_t> queries) {
  return ask_later(scheduler, queries).get();
}

}  // namespace blindfuse::server_testing
