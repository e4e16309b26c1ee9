// Decides when a pipeline computes its canary, and checks the canary's response.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "cuda/device/memory.h"
#include "cuda/scan/scanner.h"
#include "src/engine/canary.h"

namespace blindfuse {

// For the pipeline's one caller.
class CanaryCheck {
 public:
  // slot: the canary's query in the form that slots have. The canary and the scanner outlive it. On
  // the current device.
  CanaryCheck(const Canary& canary, std::span<const uint32_t> slot, Scanner& scanner,
              std::chrono::milliseconds interval);

  // In the device's memory.
  const uint32_t* query() const { return query_.data(); }
  // Whether an interval has passed since this kernel last had a right response in a batch of its
  // tile for this many queries (room_of), or it had none.
  bool is_due(Scanner::Kernel kernel, uint32_t query_count) const;
  bool is_right(std::span<const uint8_t> response) const;
  // Whether the second level is checked, too.
  bool has_second_level() const { return !canary_.second_response.empty(); }
  bool is_second_right(std::span<const uint8_t> response) const;
  // The place of the canary in the next batch of this many queries, including the canary. It may be
  // any place, so that every faulty place is found.
  uint32_t next_place(uint32_t query_count);
  // Overwrites a response with one that is wrong in each of its bytes.
  void spoil(std::span<uint8_t> response) const;
  void spoil_second(std::span<uint8_t> response) const;

  void note_right(Scanner::Kernel kernel, uint32_t query_count);
  // Called after a kernel was wrong: earlier right results may be wrong now for the same reason.
  void make_all_due() { right_.clear(); }
  // Called before the responses of a batch by this kernel leave. Throws ResourceError if the kernel
  // has come into quarantine since the batch began, for example by the canary of another batch.
  void require_fit(Scanner::Kernel kernel) const;
  // Called for a wrong response in a batch of query_count, by this kernel and this responder.
  // Determines from the products which of the two was wrong, and puts it into quarantine. Throws
  // the errors of AnswerPipeline::set_canary, and KernelReplacedError if another kernel replaces
  // this one. If the matrix has changed, nothing comes into quarantine. All other kernels are then
  // due. is_proved: whether AnswerPipeline::check() has succeeded, or a batch has begun. Before
  // that, a wrong responder is counted and refused, and not put into quarantine.
  [[noreturn]] void blame(Scanner::Kernel kernel, std::string_view responder, uint32_t query_count,
                          std::span<const uint32_t> products, bool is_proved);
  // The same for a wrong response of the second level, whose first level was right.
  [[noreturn]] void blame_second(std::string_view responder, uint32_t query_count, bool is_proved);

 private:
  using Clock = std::chrono::steady_clock;
  using Tile = std::pair<Scanner::Kernel, uint32_t>;  // and the queries that it has room for

  [[noreturn]] void blame_responder(std::string_view responder, const std::string& why,
                                    bool is_proved);

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
