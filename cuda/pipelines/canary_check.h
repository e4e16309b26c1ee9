// When a pipeline computes its canary, and what it says of the response that comes of it.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <random>
#include <span>
#include <string_view>
#include <utility>

#include "cuda/device/memory.h"
#include "cuda/scan/scanner.h"
#include "src/engine/canary.h"

namespace blindfuse {

// For the pipeline's one caller.
class CanaryCheck {
 public:
  // slot: the canary's query as slots have them. The canary and the scanner outlive it. On the
  // current device.
  CanaryCheck(const Canary& canary, std::span<const uint32_t> slot, Scanner& scanner,
              std::chrono::milliseconds interval);

  // In the device's memory.
  const uint32_t* query() const { return query_.data(); }
  // Whether an interval has passed since this kernel last had a right response in a batch of its
  // tile for this many queries (room_of), or it had none.
  bool is_due(Scanner::Kernel kernel, uint32_t query_count) const;
  bool is_right(std::span<const uint8_t> response) const;
  // Where the canary is put in the next batch of this many queries, of which it is one: anywhere,
  // so that a place that is wrong is found, whichever it is.
  uint32_t next_place(uint32_t query_count);
  // Overwrites a response, in each of its bytes, by one that is not right.
  void spoil(std::span<uint8_t> response) const;

  void note_right(Scanner::Kernel kernel, uint32_t query_count);
  // After a kernel was wrong: what was right before may be wrong now for the same reason.
  void make_all_due() { right_.clear(); }
  // Before the responses of a batch by this kernel leave: throws ResourceError where it has come
  // into quarantine since the batch began, as by the canary of another one.
  void require_fit(Scanner::Kernel kernel) const;
  // Of a response that is not right, in a batch of query_count, by this kernel and this responder:
  // says by the products which of the two was wrong, puts it into quarantine, and throws what
  // AnswerPipeline::set_canary says, KernelReplacedError where another kernel takes the place of
  // this one. Where the matrix has changed, nothing comes into quarantine. All other kernels are
  // due. is_proved: whether AnswerPipeline::check() has gone well, or a batch has begun; before
  // that a responder that is wrong is counted and refused, and not in quarantine.
  [[noreturn]] void blame(Scanner::Kernel kernel, std::string_view responder, uint32_t query_count,
                          std::span<const uint32_t> products, bool is_proved);

 private:
  using Clock = std::chrono::steady_clock;
  using Tile = std::pair<Scanner::Kernel, uint32_t>;  // and the queries that it has room for

  static Tile tile_of(Scanner::Kernel kernel, uint32_t query_count) {
    return {kernel, room_of(kernel, query_count)};
  }

  const Canary& canary_;
  Scanner& scanner_;
  const std::chrono::milliseconds interval_;
  std::mt19937_64 places_;
  DeviceMemory<uint32_t> query_;
  std::map<Tile, Clock::time_point> right_;
};

}  // namespace blindfuse
